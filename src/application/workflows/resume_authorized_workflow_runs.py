"""ResumeAuthorizedWorkflowRuns: continue the workflow runs of a person that wait for an account
which is connected now."""

import logging

from application.mcp.account_server import account_topic
from application.mcp.authorization import McpAuthorizer
from application.mcp.ports import McpServerStore
from application.runs.ports import RunQueue
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock, IdSource
from application.system.wakeups import Wakeups
from application.workflows.ports import WorkflowRunFilter, WorkflowRunStore
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, is_storage_away
from domain.identity.api_key import person_of
from domain.ids import ApiKeyId, AuditEventId, McpServerId, RunId
from domain.json_value import JsonValue
from domain.mcp.server import McpServer
from domain.workflows.account_wait import ACCEPT, AccountWait
from domain.workflows.run import WorkflowRun, WorkflowRunStatus

logger = logging.getLogger(__name__)

REREAD_S = 5.0
"""Interval of checks for the account without a signal."""


class ResumeAuthorizedWorkflowRuns:
    """The ports `AccountWaiters` and `AccountWaits`. Rules:
    - Only workflow runs of the person that the server acts for, and only their nodes that wait for
      an account there.
    - Each continues on any worker, as if the person had accepted the question. Audited as
      `workflow.run_resumed`.
    - A worker that executes other nodes of the run notices the account itself.
    - A run that was suspended while the account was being connected continues at once: a first
      question only, since a server may refuse an account that was renewed for it.
    - A node whose server is gone, or is not used with accounts of persons any more, need not wait:
      its call says what is wrong.
    - A run that changed meanwhile is left as it is. The others continue.
    """

    def __init__(
        self,
        *,
        runs: WorkflowRunStore,
        queue: RunQueue,
        servers: McpServerStore,
        authorizer: McpAuthorizer,
        wakeups: Wakeups,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._runs = runs
        self._queue = queue
        self._servers = servers
        self._authorizer = authorizer
        self._wakeups = wakeups
        self._clock = clock
        self._ids = ids

    async def connected(self, server: McpServer) -> None:
        if server.person_id is None:
            return
        wanted = WorkflowRunFilter(status=WorkflowRunStatus.REQUIRES_ACTION, requested_by=ApiKeyId(server.person_id))
        cursor = None
        while True:
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self._runs.page(server.organization_id, wanted, request)
            for outline in page.items:
                run = await self._runs.get(outline.organization_id, outline.id)
                if run is not None and server.id in _awaited(run):
                    await self._resume(run, server.id)
            if (cursor := page.next_cursor) is None:
                return

    async def is_connected(self, run: WorkflowRun, wanted: AccountWait) -> bool:
        server = await self._servers.get(run.organization_id, wanted.server_id)
        acting = None if server is None else server.acting_for(person_of(run.requested_by))
        if acting is None or acting.person_id is None:
            return True
        account = await self._authorizer.account(acting)
        return account is not None and account.renewed_at >= wanted.since

    async def connected_in(self, run: WorkflowRun, wanted: AccountWait) -> None:
        server = await self._servers.get(run.organization_id, wanted.server_id)
        if server is None:
            return
        async with self._wakeups.subscribe(account_topic(server.acting_for(person_of(run.requested_by)))) as signal:
            while not await self.is_connected(run, wanted):
                await signal.wait(REREAD_S)

    async def began_to_wait(self, run: WorkflowRun) -> None:
        waits = {wait for node in run.waiting_nodes if (wait := node.waits_for_account) is not None}
        for wait in waits:
            if wait.number == 1 and await self.is_connected(run, wait):
                await self._resume(run, wait.server_id)

    async def _resume(self, run: WorkflowRun, server_id: McpServerId) -> None:
        now, ids = self._clock.now(), sorted(_awaited(run)[server_id])
        nodes: list[JsonValue] = [*ids]
        audit = AuditEvent(
            id=AuditEventId(self._ids.new("aud")),
            organization_id=run.organization_id,
            action=AuditAction.WORKFLOW_RUN_RESUMED,
            actor=run.requested_by,
            resource=run.id,
            at=now,
            server_id=server_id,
            details={"nodes": nodes},
        )

        def decide(stored: WorkflowRun) -> WorkflowRun:
            return stored.answered(dict.fromkeys(ids, ACCEPT), at=now)

        try:
            await self._runs.change(run.organization_id, run.id, decide, at=now, audit=audit)
        except ServiceError as error:
            if is_storage_away(error):
                raise
            ids_of_run = {"workflow_run_id": run.id, "code": error.code}
            logger.info("a workflow run did not continue with a connected account", extra=ids_of_run)
            return
        await self._queue.submit(RunId(run.id))


def _awaited(run: WorkflowRun) -> dict[McpServerId, set[str]]:
    """The nodes that wait for an account, by its server."""
    found: dict[McpServerId, set[str]] = {}
    for node in run.waiting_nodes:
        if (wait := node.waits_for_account) is not None:
            found.setdefault(wait.server_id, set()).add(node.node_id)
    return found
