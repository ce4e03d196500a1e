"""StopWorkOfKey: ends what an API key started and what would continue without it."""

from dataclasses import replace

from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.revocation.end_sessions import EndSessions, EndSessionsCommand
from application.revocation.stopped_work import StoppedWork
from application.runs.cancel_runs import CancelRuns, CancelRunsCommand
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.workflows.ports import WorkflowRunFilter, WorkflowRunStore
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, GatewaySessionId, WorkflowRunId


class StopWorkOfKey:
    """Rules:
    - Its sessions of the console end (`EndSessions`).
    - Gateway sessions that the key opened are revoked, its unfinished workflow runs are stopped,
      and its unfinished runs are cancelled, with the runs of its workflows and sessions; also those
      that it started acting as another user.
    - Each is audited as if `principal` had ended it alone; `CancelRuns` has the rules of runs.
    - Schedules, agents and keys that the key created belong to the organization and stay.

    The caller may end the key or the user, which is checked before, and needs no permission for
    what ends with it. After a failure another execution ends the rest.
    """

    def __init__(
        self,
        *,
        end_sessions: EndSessions,
        sessions: GatewaySessionStore,
        revoke_session: RevokeGatewaySession,
        workflow_runs: WorkflowRunStore,
        stop_workflow_run: StopWorkflowRun,
        cancel_runs: CancelRuns,
        clock: Clock,
    ) -> None:
        self._end_sessions = end_sessions
        self._sessions = sessions
        self._revoke_session = revoke_session
        self._workflow_runs = workflow_runs
        self._stop_workflow_run = stop_workflow_run
        self._cancel_runs = cancel_runs
        self._clock = clock

    async def execute(self, principal: Principal, key_id: ApiKeyId) -> StoppedWork:
        # First what starts runs, then the runs.
        principal = replace(principal, role=Role.ADMIN, custom_role=None, teams=None)
        sessions = await self._revoke_sessions(principal, key_id)
        await self._end_sessions.execute(EndSessionsCommand(principal=principal, holder=key_id))
        workflow_runs = await self._stop_workflow_runs(principal, key_id)
        runs = await self._cancel_runs.execute(CancelRunsCommand(principal=principal, requested_by=key_id))
        return StoppedWork(runs=runs.cancelled + runs.stopping, workflow_runs=workflow_runs, gateway_sessions=sessions)

    async def _revoke_sessions(self, principal: Principal, key_id: ApiKeyId) -> int:
        revoked = 0
        while session_ids := await self._sessions.open_of_key(
            principal.organization_id, key_id, at=self._clock.now(), limit=MAX_PAGE_SIZE
        ):
            for session_id in session_ids:
                revoked += await self._revoke(principal, session_id)
        return revoked

    async def _revoke(self, principal: Principal, session_id: GatewaySessionId) -> bool:
        """False if the session has ended meanwhile."""
        try:
            await self._revoke_session.execute(RevokeGatewaySessionCommand(principal=principal, session_id=session_id))
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return False
        return True

    async def _stop_workflow_runs(self, principal: Principal, key_id: ApiKeyId) -> int:
        wanted = WorkflowRunFilter(requested_by=key_id, is_unfinished=True)
        stopped, cursor = 0, None
        while True:
            page = await self._workflow_runs.page(
                principal.organization_id, wanted, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor)
            )
            for run in page.items:
                stopped += await self._stop(principal, run.id)
            if page.next_cursor is None:
                return stopped
            cursor = page.next_cursor

    async def _stop(self, principal: Principal, run_id: WorkflowRunId) -> bool:
        """False if the run has been deleted meanwhile."""
        try:
            await self._stop_workflow_run.execute(StopWorkflowRunCommand(principal=principal, run_id=run_id))
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return False
        return True
