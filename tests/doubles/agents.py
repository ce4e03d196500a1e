"""Agents and their versions in memory."""

from collections.abc import Collection

from application.agents.ports import AgentName
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found, require_version
from domain.ids import AgentId, OrganizationId
from domain.teams import Teams, sees
from tests.doubles.owners import require_group, seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryAgentStore:
    """The `AgentStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, agent: Agent, audit: AuditEvent) -> None:
        """Store a new agent."""
        require_group(self._state, agent.organization_id, agent.team)
        self._refuse_taken_name(agent)
        self._state.agents[agent.id] = [agent]
        self._state.record(audit)

    async def save(self, agent: Agent, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version."""
        stored = await self.get(agent.organization_id, agent.id)
        if stored is None:
            raise not_found("agent", agent.id)
        require_version("agent", stored.version, expected=expected_version)
        require_group(self._state, agent.organization_id, agent.team, former=stored.team)
        self._refuse_taken_name(agent)
        self._state.agents[agent.id].append(agent)
        self._state.record(audit)

    async def get(self, organization_id: OrganizationId, agent_id: AgentId) -> Agent | None:
        """The newest version, or None."""
        return next((agent for agent in self._in_use(organization_id) if agent.id == agent_id), None)

    async def find(self, organization_id: OrganizationId, name: str) -> Agent | None:
        """The newest version of the agent of that name, or None."""
        return next((agent for agent in self._in_use(organization_id) if agent.config.name == name), None)

    async def names(
        self, organization_id: OrganizationId, agent_ids: Collection[AgentId], *, teams: Teams = None
    ) -> dict[AgentId, AgentName]:
        """What these agents are called, deleted ones too."""
        return {
            agent_id: AgentName(name=versions[-1].config.name, deleted=agent_id in self._state.deleted_agents)
            for agent_id in agent_ids
            if (versions := self._state.agents.get(agent_id))
            and versions[-1].organization_id == organization_id
            and sees(teams, versions[-1].team)
        }

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Agent]:
        """Agents at their newest version, newest agent first."""
        return newest_first(
            seen(self._state, request.teams, self._in_use(organization_id), lambda agent: agent.id),
            lambda agent: by_time(agent.created_at, agent.id),
            request,
        )

    async def versions(self, organization_id: OrganizationId, agent_id: AgentId, request: PageRequest) -> Page[Agent]:
        """All versions of one agent, newest first."""
        versions = [agent for agent in self._state.agents.get(agent_id, []) if agent.organization_id == organization_id]
        return newest_first(versions, lambda agent: (f"{agent.version:012d}", agent.id), request)

    async def delete(self, organization_id: OrganizationId, agent_id: AgentId, audit: AuditEvent) -> bool:
        """Remove the agent from use."""
        if await self.get(organization_id, agent_id) is None:
            return False
        for stored in self._state.runs.values():
            if stored.run.agent_id == agent_id and not stored.run.status.is_terminal:
                raise conflict(
                    "agent_busy", f"Run {stored.run.id} of this agent is {stored.run.status}.", run_id=stored.run.id
                )
        self._state.deleted_agents.add(agent_id)
        self._state.record(audit)
        return True

    def _in_use(self, organization_id: OrganizationId) -> list[Agent]:
        return [
            versions[-1]
            for agent_id, versions in self._state.agents.items()
            if versions[-1].organization_id == organization_id and agent_id not in self._state.deleted_agents
        ]

    def _refuse_taken_name(self, agent: Agent) -> None:
        for other in self._in_use(agent.organization_id):
            if other.config.name == agent.config.name and other.id != agent.id:
                raise conflict("agent_name_taken", f"There is an agent {agent.config.name!r} already.")
