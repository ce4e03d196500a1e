"""UpdateAgent: changes settings of an agent, as a new version."""

from dataclasses import dataclass, field, replace

from application.agents.agent_checks import AgentChecks
from application.agents.agent_lookup import existing_agent
from application.agents.canary_settings import GivenCanary, with_canaries
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry, team_details
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource
from domain.agents.agent import Agent, AgentSettings
from domain.audit.event import AuditAction
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAgentCommand:
    """`agent` is an id or a name. `changes` are fields of `AgentSettings`, without limits and
    canary tokens; `limits` are fields of `LimitSettings`. `expected_version` is the version that
    the client read; None skips the check."""

    principal: Principal
    agent: str
    changes: Changes = field(default_factory=dict)
    limits: Changes = field(default_factory=dict)
    canary_tokens: tuple[GivenCanary, ...] | None = None
    expected_version: int | None = None


class UpdateAgent:
    """Rules:
    - Requires `admin`. The next run uses the change.
    - Missing fields stay; limits are merged one by one. The result must be valid.
    - A change is audited `agent.updated` with the names of the changed fields. Without a change
      there is no version and no audit entry.
    """

    def __init__(self, *, agents: AgentStore, checks: AgentChecks, clock: Clock, ids: IdSource) -> None:
        self._agents = agents
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateAgentCommand) -> Agent:
        """Raises FORBIDDEN, NOT_FOUND, INVALID `agent_invalid`, PRECONDITION `version_conflict`,
        CONFLICT `agent_name_taken`.
        """
        principal = command.principal
        principal.require(Permission.AGENTS_MANAGE)
        agent = await existing_agent(self._agents, principal, command.agent)
        require_version("agent", agent.version, expected=command.expected_version)
        before = AgentSettings.of(agent.config)
        settings = with_changes(before, {"limits": with_changes(before.limits, command.limits), **command.changes})
        settings = with_canaries(settings, command.canary_tokens, agent.config.canary_tokens, ids=self._ids)
        if settings == before:
            return agent
        config = await self._checks.config_of(principal, settings, former_team=agent.team)
        now = self._clock.now()
        changed = replace(agent, version=agent.version + 1, config=config, updated_at=now)
        audit = audit_entry(
            principal,
            AuditAction.AGENT_UPDATED,
            agent.id,
            ids=self._ids,
            at=now,
            details={
                "name": config.name,
                "version": changed.version,
                "changed": [*changed_fields(agent.config, config)],
                **team_details(agent.team, config.team),
            },
        )
        await self._agents.save(changed, expected_version=agent.version, audit=audit)
        return changed
