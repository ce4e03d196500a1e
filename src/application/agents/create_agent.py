"""CreateAgent: an agent at version 1."""

from dataclasses import dataclass

from application.agents.agent_checks import AgentChecks
from application.agents.canary_settings import GivenCanary, with_canaries
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry, team_details
from application.system.ports import Clock, IdSource
from domain.agents.agent import Agent, AgentSettings
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import AgentId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAgentCommand:
    principal: Principal
    settings: AgentSettings
    canary_tokens: tuple[GivenCanary, ...] = ()


class CreateAgent:
    """Rules:
    - Requires `admin`. Audited `agent.created`.
    - The name is unique in the organization. Models, native tools and MCP servers must exist.
      `TeamChecks` has the rules of teams.
    """

    def __init__(self, *, agents: AgentStore, checks: AgentChecks, clock: Clock, ids: IdSource) -> None:
        self._agents = agents
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateAgentCommand) -> Agent:
        """Raises FORBIDDEN, INVALID `agent_invalid`, CONFLICT `agent_name_taken`."""
        principal = command.principal
        principal.require(Permission.AGENTS_MANAGE)
        settings = with_canaries(command.settings, command.canary_tokens, (), ids=self._ids)
        config = await self._checks.config_of(principal, settings)
        now = self._clock.now()
        agent = Agent(
            id=AgentId(self._ids.new("agt")),
            organization_id=principal.organization_id,
            version=1,
            config=config,
            created_at=now,
            updated_at=now,
        )
        audit = audit_entry(
            principal,
            AuditAction.AGENT_CREATED,
            agent.id,
            ids=self._ids,
            at=now,
            details={"name": config.name, "version": agent.version, **team_details(None, agent.team)},
        )
        await self._agents.add(agent, audit)
        return agent
