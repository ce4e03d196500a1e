"""DeleteAgent: removes an agent from use."""

from dataclasses import dataclass

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAgentCommand:
    """`agent` is an id or a name."""

    principal: Principal
    agent: str


class DeleteAgent:
    """Requires `admin`. Refused while the agent has an unfinished run; finished runs stay readable.
    Audited `agent.deleted`."""

    def __init__(self, *, agents: AgentStore, clock: Clock, ids: IdSource) -> None:
        self._agents = agents
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteAgentCommand) -> None:
        """Raises FORBIDDEN, NOT_FOUND, CONFLICT `agent_busy`."""
        principal = command.principal
        principal.require(Permission.AGENTS_MANAGE)
        agent = await existing_agent(self._agents, principal, command.agent)
        audit = audit_entry(
            principal,
            AuditAction.AGENT_DELETED,
            agent.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": agent.config.name, "version": agent.version},
        )
        if not await self._agents.delete(principal.organization_id, agent.id, audit):
            raise not_found("agent", command.agent)
