"""CancelRuns: cancels all unfinished runs of an agent, of a server's agents, of a key, or of the
organization."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.unfinished_runs import UnfinishedFilter, UnfinishedRuns
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock, IdSource
from application.system.together import together
from domain.agents.agent import Agent
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ApiKeyId, McpServerId, OrganizationId, RunId
from domain.runs.lane import Lane
from domain.runs.run import RunStatus

BATCH = 32
"""Runs that are cancelled in parallel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRunsCommand:
    """`agent` by id or name, `server` by id or slug, or the key `requested_by`; with none of them,
    all runs of the organization. Of these, only the ones in `lane`, and only `queued` ones."""

    principal: Principal
    agent: str | None = None
    server: str | None = None
    requested_by: ApiKeyId | None = None
    lane: Lane | None = None
    queued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRuns:
    """`cancelled` runs have ended; `stopping` runs end once their workers have stopped."""

    cancelled: int
    stopping: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    resource: str
    wanted: UnfinishedFilter
    server_id: McpServerId | None = None


class CancelRuns:
    """Rules:
    - Requires `operator`.
    - A run uses a server if its agent lists the server now, or if a call of it is under way.
    - Runs that the caller does not see continue.
    - Queued runs that begin before their turn comes are cancelled too.
    - Runs started meanwhile continue. To prevent them, disable the agent or the server first.
    - Batches are bounded, newest runs first, so that waiting runs do not replace stopped ones.
    - Each run is audited as a single cancellation, the whole as `runs.cancelled` with the counts.
    """

    def __init__(
        self,
        *,
        unfinished: UnfinishedRuns,
        cancel_run: CancelRun,
        agents: AgentStore,
        servers: McpServerStore,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._unfinished = unfinished
        self._cancel_run = cancel_run
        self._agents = agents
        self._servers = servers
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CancelRunsCommand) -> CancelledRuns:
        """Raises FORBIDDEN, NOT_FOUND `agent_not_found`, `mcp_server_not_found`."""
        principal = command.principal
        principal.require(Permission.RUNS_CONTROL)
        target = await self._target(command)
        wanted = replace(target.wanted, lane=command.lane, queued=command.queued)
        cancelled = stopping = 0
        before: RunId | None = None
        while batch := await self._unfinished.batch(principal.organization_id, wanted, before=before, limit=BATCH):
            statuses = await together(self._cancelled(principal, run_id) for run_id in batch)
            cancelled += statuses.count(RunStatus.CANCELLED)
            stopping += statuses.count(RunStatus.IN_PROGRESS)
            before = batch[-1]
        audit = audit_entry(
            principal,
            AuditAction.RUNS_CANCELLED,
            target.resource,
            ids=self._ids,
            at=self._clock.now(),
            server_id=target.server_id,
            details={"cancelled": cancelled, "stopping": stopping},
        )
        await self._audit_log.record(audit)
        return CancelledRuns(cancelled=cancelled, stopping=stopping)

    async def _target(self, command: CancelRunsCommand) -> _Target:
        principal = command.principal
        organization_id = principal.organization_id
        if command.agent is not None:
            agent = await existing_agent(self._agents, principal, command.agent)
            return _Target(resource=agent.id, wanted=UnfinishedFilter(agent_ids=frozenset({agent.id})))
        if command.requested_by is not None:
            return _Target(resource=command.requested_by, wanted=UnfinishedFilter(requested_by=command.requested_by))
        if command.server is None:
            return _Target(resource=organization_id, wanted=UnfinishedFilter())
        server = await existing_server(self._servers, principal, command.server)
        slug = server.config.slug
        users = [agent.id async for agent in self._all_agents(organization_id) if slug in agent.config.mcp_servers]
        return _Target(
            resource=server.id,
            wanted=UnfinishedFilter(agent_ids=frozenset(users), server_id=server.id),
            server_id=server.id,
        )

    async def _all_agents(self, organization_id: OrganizationId) -> AsyncIterator[Agent]:
        request = PageRequest(limit=MAX_PAGE_SIZE)
        while True:
            page = await self._agents.page(organization_id, request)
            for agent in page.items:
                yield agent
            if page.next_cursor is None:
                return
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=page.next_cursor)

    async def _cancelled(self, principal: Principal, run_id: RunId) -> RunStatus | None:
        """The status after the cancellation. None if the run has been deleted."""
        try:
            return (await self._cancel_run.execute(CancelRunCommand(principal=principal, run_id=run_id))).status
        except ServiceError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise
