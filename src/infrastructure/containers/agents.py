"""Providers of agents and their versions."""

from dependency_injector import containers

from application.agents.agent_checks import AgentChecks
from application.agents.create_agent import CreateAgent
from application.agents.delete_agent import DeleteAgent
from application.agents.name_agents import NameAgents
from application.agents.queries import GetAgent, ListAgents, ListAgentVersions
from application.agents.update_agent import UpdateAgent
from infrastructure.containers.models import Models
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.containers.wiring import Singletons

singleton = Singletons(Platform, Storage)


class Agents(containers.DeclarativeContainer):
    agent_checks = singleton(
        AgentChecks,
        models=Models.routed_models,
        prices=Models.prices,
        native_tools=Tools.toolset_builder,
        agents=Storage.fresh_agents,
        policies=Tools.policy_checks,
    )
    create_agent = singleton(CreateAgent, agents=Storage.fresh_agents, checks=agent_checks)
    update_agent = singleton(UpdateAgent, agents=Storage.fresh_agents, checks=agent_checks)
    get_agent = singleton(GetAgent, agents=Storage.fresh_agents)
    list_agents = singleton(ListAgents)
    name_agents = singleton(NameAgents)
    list_agent_versions = singleton(ListAgentVersions)
    delete_agent = singleton(DeleteAgent, agents=Storage.fresh_agents)
