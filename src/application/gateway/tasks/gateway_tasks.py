"""GatewayTasks: agents called as tasks. The run is the task: whichever process is asked reads how it stands."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from application.approvals.ports import ApprovalStore, session_approvals_topic
from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.ports import AskedCall, GatewayApprovals, GatewayLedger, GatewaySessionStore
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.tasks.task_ids import TaskIds, task_not_found
from application.gateway.tools.agent_caller import agent_caller
from application.gateway.tools.toolbox import GatewayToolbox
from application.runs.agent_reply import reply_of
from application.runs.call_agent import agent_run_id
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunReader, status_topic
from application.system.ports import Clock, IdSource
from application.system.wakeups import Wakeups
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.errors import conflict
from domain.gateway.call import GatewayCall, GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.gateway.task import GatewayTask, TaskName, TaskStatus, status_of, ttl_ms
from domain.ids import ToolCallId
from domain.runs.approvals import denied_result
from domain.runs.called_by import CalledBy
from domain.runs.run import Run, RunStatus
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult

REREAD_S = 5.0
"""How long a wake-up that was lost may go unnoticed."""
STOP_WITHIN_S = 20.0
"""How long a worker may take to let go of a run that is cancelled."""


class GatewayTasks:
    """Rules: a task lasts as long as its session; one whose call waits for an approval calls its agent when it is asked about after
    that is given; results are under the same canaries and limits as those of calls; cancelling a task cancels its run."""

    def __init__(
        self,
        *,
        call_tool: CallGatewayTool,
        sessions: GatewaySessionStore,
        toolbox: GatewayToolbox,
        runs: RunReader,
        asking: GatewayApprovals,
        approvals: ApprovalStore,
        ledger: GatewayLedger,
        halting: HaltGatewaySession,
        cancel_run: CancelRun,
        wakeups: Wakeups,
        task_ids: TaskIds,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._call_tool = call_tool
        self._sessions = sessions
        self._toolbox = toolbox
        self._runs = runs
        self._asking = asking
        self._approvals = approvals
        self._ledger = ledger
        self._halting = halting
        self._cancel_run = cancel_run
        self._wakeups = wakeups
        self._task_ids = task_ids
        self._clock = clock
        self._ids = ids

    def begun(self, session: GatewaySession, tool: str, answer: GatewayAnswer) -> GatewayTask | None:
        """The task that a call has become; None for a call that was refused, which `answer` says all about."""
        now = self._clock.now()
        if answer.begun is not None:
            call_id, run_id = answer.begun
            name = TaskName(session_id=session.id, tool=tool, call_id=call_id, created_at=now, run_id=run_id)
            return self._task(session, self._task_ids.sealed(name), name, TaskStatus.WORKING, "The agent was called.")
        if answer.waiting is not None:
            approval = answer.waiting.approval
            name = TaskName(
                session_id=session.id,
                tool=tool,
                call_id=approval.tool_call_id,
                created_at=now,
                approval_id=approval.id,
            )
            return self._task(session, self._task_ids.sealed(name), name, TaskStatus.WORKING, _waits_for(approval))
        return None

    async def get(self, session: GatewaySession, task_id: str) -> GatewayTask:
        """The task as it stands. Raises INVALID `task_not_found`, CONFLICT `gateway_session_halted`, FORBIDDEN."""
        name = self._task_ids.opened(task_id, session)
        run = await self._run_of(session, name)
        if run is None and name.approval_id is None:
            raise task_not_found()  # the run is as old as what is kept of runs
        if run is None:
            return await self._of_wait(session, task_id, name)
        return await self._of_run(session, task_id, name, run)

    async def ended(
        self, session: GatewaySession, task_id: str, on_change: Callable[[GatewayTask], Awaitable[None]]
    ) -> GatewayTask:
        """The task once it has ended; `on_change` is told of what it is at meanwhile. Raises as `get`, also once the session has
        ended."""
        name, told = self._task_ids.opened(task_id, session), None
        while True:
            topic = await self._topic(session, name)
            async with self._wakeups.subscribe(topic) as bell:
                while topic == await self._topic(session, name):
                    await self._require_open(session)
                    task = await self.get(session, task_id)
                    if task.status.is_terminal:
                        return task
                    if task.message != told:
                        told = task.message
                        await on_change(task)
                    await bell.wait(REREAD_S)

    async def cancel(self, session: GatewaySession, task_id: str) -> GatewayTask:
        """The task, cancelled. Raises INVALID `task_not_found`, CONFLICT `task_ended`, `task_not_stopped`."""
        name = self._task_ids.opened(task_id, session)
        task = await self.get(session, task_id)
        if task.status.is_terminal:
            raise conflict("task_ended", f"The task has ended: it is {task.status.value}.")
        run = await self._run_of(session, name)
        if run is None:
            asked = await self._asked(session, name)
            if asked is not None and not await self._withdraw(session, asked):
                raise conflict("task_not_stopped", "The agent is being called just now: cancel the task again.")
            return await self.get(session, task_id)
        opener = agent_caller(session, {}, retry_key=None, waits=False).principal
        await self._cancel_run.execute(CancelRunCommand(principal=opener, run_id=run.id))
        await self._stopped(run)
        task = await self.get(session, task_id)
        if task.status is not TaskStatus.CANCELLED:
            raise conflict("task_ended", f"The task was not cancelled: it is {task.status.value}.")
        return task

    async def _require_open(self, session: GatewaySession) -> None:
        """A task lasts as long as its session, whoever waits for it."""
        stored = await self._sessions.get(session.organization_id, session.id)
        if stored is None or not stored.is_open(self._clock.now()):
            raise task_not_found()

    async def _stopped(self, run: Run) -> None:
        """Wait until a worker has let go of the run, or for as long as that may take."""
        until = self._clock.monotonic() + STOP_WITHIN_S
        async with self._wakeups.subscribe(status_topic(run.id)) as bell:
            while (left_s := until - self._clock.monotonic()) > 0:
                stored = await self._runs.get(run.organization_id, run.id)
                if stored is None or stored.status.is_terminal:
                    return
                await bell.wait(min(left_s, REREAD_S))

    async def _topic(self, session: GatewaySession, name: TaskName) -> str:
        """What is woken when the task may have moved on."""
        run = await self._run_of(session, name)
        return session_approvals_topic(session.id) if run is None else status_topic(run.id)

    async def _run_of(self, session: GatewaySession, name: TaskName) -> Run | None:
        run = await self._runs.get(session.organization_id, name.run_id or agent_run_id(session.id, name.call_id))
        called_by = None if run is None else CalledBy.of(run.metadata)
        return run if called_by is not None and called_by.gateway_session_id == session.id else None

    async def _of_run(self, session: GatewaySession, task_id: str, name: TaskName, run: Run) -> GatewayTask:
        status = status_of(run)
        task = self._task(session, task_id, name, status, _message(run), at=run.finished_at or run.started_at)
        if not status.is_terminal:
            return task
        toolbox = await self._toolbox.of(session)
        limit = toolbox.toolset.policy_of(name.tool).max_result_bytes
        reply = reply_of(run)
        text = cut(cleaned(reply.result.text), TEXT_LIMIT_BYTES if limit is None else limit)
        result, leaked = toolbox.guard.result(replace(reply.result, text=text))
        if leaked is None and reply.run is not None:
            leaked = toolbox.guard.arguments(reply.run)
        if leaked is not None:
            raise await self._halting.execute(session, self._told(session, name, result), None, leaked)
        run_shape = None if limit is not None else reply.run
        return replace(task, result=result, run=run_shape)

    async def _of_wait(self, session: GatewaySession, task_id: str, name: TaskName) -> GatewayTask:
        """Of a call that was not made yet: it is made now, if it may be."""
        asked = await self._asked(session, name)
        if asked is None:
            return await self._never_made(session, task_id, name)
        command = CallGatewayToolCommand(
            session=session, name=name.tool, arguments=asked.approval.arguments, resumable=True, as_task=True
        )
        answer = await self._call_tool.resume(command, asked.approval.id)
        if answer is not None and answer.waiting is not None:
            waits = _waits_for(answer.waiting.approval)
            return self._task(session, task_id, name, TaskStatus.WORKING, waits)
        run = await self._run_of(session, name)
        if run is not None:
            return await self._of_run(session, task_id, name, run)
        if answer is None:  # another process was faster, and is about to start the run
            return self._task(session, task_id, name, TaskStatus.WORKING, _BEING_CALLED)
        still = await self._asked(session, name)
        if still is not None:  # policy denies by now what was asked for
            await self._withdraw(session, still)
        task = self._task(session, task_id, name, TaskStatus.FAILED, answer.result.text, at=self._clock.now())
        return replace(task, result=answer.result)

    async def _never_made(self, session: GatewaySession, task_id: str, name: TaskName) -> GatewayTask:
        """Of a call that waits no more and has no run: its approval says why, or the ledger does."""
        assert name.approval_id is not None
        approval = await self._approvals.get(session.organization_id, name.approval_id)
        if approval is None:
            raise task_not_found()
        status = TaskStatus.FAILED
        if approval.state is ApprovalState.CANCELLED:
            status, result = TaskStatus.CANCELLED, ToolResult.blocked("task_cancelled", _CANCELLED)
        elif approval.state in (ApprovalState.DENIED, ApprovalState.EXPIRED):
            result = denied_result(approval.state, approval.reason)
        else:
            stored = await self._ledger.call_of(session.organization_id, session.id, name.call_id)
            if stored is not None and stored[1] is None:  # another process makes the call just now
                return self._task(session, task_id, name, TaskStatus.WORKING, _BEING_CALLED)
            run = await self._run_of(session, name)
            if run is not None:
                return await self._of_run(session, task_id, name, run)
            settled = None if stored is None or stored[1] is None else stored[1].result
            not_called = ToolResult.blocked("agent_not_called", _NOT_CALLED)
            result = settled if settled is not None and settled.is_error else not_called
        task = self._task(session, task_id, name, status, result.text, at=approval.decided_at or approval.expires_at)
        return replace(task, result=result)

    async def _asked(self, session: GatewaySession, name: TaskName) -> AskedCall | None:
        waiting = await self._asking.asked(session.organization_id, session.id, name.tool)
        return next((asked for asked in waiting if asked.call.id == name.call_id), None)

    async def _withdraw(self, session: GatewaySession, asked: AskedCall) -> bool:
        """Nobody needs to decide about the call any more, which will not be made. False if it is being made already."""
        now = self._clock.now()
        outcome = ApprovalOutcome(approval_id=asked.approval.id, state=ApprovalState.CANCELLED, at=now, by="system")
        await self._asking.end(asked.approval, outcome, ())
        # Whoever begins the call has it: nobody else does after this.
        if not await self._asking.begin(asked, replace(asked.call, recorded_at=now)):
            return False
        result = ToolResult.blocked("task_cancelled", _CANCELLED)
        settlement = GatewaySettlement(call=asked.call, result=result, duration_ms=0, at=now)
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=None))
        self._wakeups.wake(session_approvals_topic(session.id))
        return True

    def _told(self, session: GatewaySession, name: TaskName, result: ToolResult) -> GatewaySettlement:
        """That the client asked for the result, as an entry of the ledger of its own: the call was settled when its run began."""
        now = self._clock.now()
        call = GatewayCall(
            id=ToolCallId(self._ids.new("call")),
            session_id=session.id,
            organization_id=session.organization_id,
            name=name.tool,
            type=ToolType.AGENT,
            server_id=None,
            params={},
            recorded_at=now,
        )
        return GatewaySettlement(call=call, result=result, duration_ms=0, at=now)

    def _task(
        self,
        session: GatewaySession,
        task_id: str,
        name: TaskName,
        status: TaskStatus,
        message: str,
        *,
        at: datetime | None = None,
    ) -> GatewayTask:
        return GatewayTask(
            id=task_id,
            status=status,
            message=message,
            created_at=name.created_at,
            updated_at=max(name.created_at, at or name.created_at),
            ttl_ms=ttl_ms(session, name.created_at),
        )


_CANCELLED = "The task was cancelled before its agent was called."
_BEING_CALLED = "The agent is being called."
_NOT_CALLED = "The agent was not called: why was told when the task was asked about first."


def _waits_for(approval: Approval) -> str:
    until = f"{approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"The call waits for an approval: {approval.id}, until {until}."


def _message(run: Run) -> str:
    match run.status:
        case RunStatus.QUEUED:
            return f"{run.id} waits for a worker."
        case RunStatus.IN_PROGRESS:
            return f"{run.id} is at turn {run.usage.turns + 1}."
        case RunStatus.REQUIRES_ACTION:
            return reply_of(run).result.text
        case _:
            return f"{run.id} ended: {run.status.value}."
