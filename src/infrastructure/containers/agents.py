"""Providers of agents and their versions."""

from dependency_injector import containers, providers

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


class Agents(containers.DeclarativeContainer):
    agent_checks: providers.Provider[AgentChecks] = providers.Singleton(
        AgentChecks,
        models=Models.routed_models,
        prices=Models.prices,
        native_tools=Tools.toolset_builder,
        servers=Storage.servers,
        agents=Storage.fresh_agents,
        policies=Tools.policy_checks,
    )
    create_agent: providers.Provider[CreateAgent] = providers.Singleton(
        CreateAgent, agents=Storage.fresh_agents, checks=agent_checks, clock=Platform.clock, ids=Platform.ids
    )
    update_agent: providers.Provider[UpdateAgent] = providers.Singleton(
        UpdateAgent, agents=Storage.fresh_agents, checks=agent_checks, clock=Platform.clock, ids=Platform.ids
    )
    get_agent: providers.Provider[GetAgent] = providers.Singleton(GetAgent, agents=Storage.fresh_agents)
    list_agents: providers.Provider[ListAgents] = providers.Singleton(ListAgents, agents=Storage.agents)
    name_agents: providers.Provider[NameAgents] = providers.Singleton(NameAgents, agents=Storage.agents)
    list_agent_versions: providers.Provider[ListAgentVersions] = providers.Singleton(
        ListAgentVersions, agents=Storage.agents
    )
    delete_agent: providers.Provider[DeleteAgent] = providers.Singleton(
        DeleteAgent, agents=Storage.fresh_agents, clock=Platform.clock, ids=Platform.ids
    )
