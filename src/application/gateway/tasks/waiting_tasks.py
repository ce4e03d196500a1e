"""Tasks whose call waits for an approval: the call is executed, withdrawn, or has ended without a
run."""

from dataclasses import dataclass, replace
from datetime import datetime

from application.approvals.ports import ApprovalStore, session_approvals_topic
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.ports import AskedCall, GatewayApprovals, GatewayLedger
from application.gateway.tasks.task_ids import task_not_found
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.gateway.call import GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession
from domain.gateway.task import TaskName, TaskStatus
from domain.runs.approvals import denied_result
from domain.tools.result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingState:
    """The state of a task without a run. `result` is set once it has ended, at `at`."""

    status: TaskStatus
    message: str
    result: ToolResult | None = None
    at: datetime | None = None


class WaitingTasks:
    """Rules:
    - An approved call is executed when its task is read.
    - A call that policy denies by then is withdrawn, and its task fails.
    - A withdrawn call is not executed, even if its approval is granted at the same time.
    """

    def __init__(
        self,
        *,
        call_tool: CallGatewayTool,
        asking: GatewayApprovals,
        approvals: ApprovalStore,
        ledger: GatewayLedger,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._call_tool = call_tool
        self._asking = asking
        self._approvals = approvals
        self._ledger = ledger
        self._wakeups = wakeups
        self._clock = clock

    async def state(self, session: GatewaySession, name: TaskName) -> WaitingState:
        """Execute the call if it is allowed. Returns the state, unless this started a run. Raises
        INVALID `task_not_found`."""
        asked = await self._asked(session, name)
        if asked is None:
            return await self._not_waiting(session, name)
        command = CallGatewayToolCommand(
            session=session, name=name.tool, arguments=asked.approval.arguments, resumable=True, as_task=True
        )
        answer = await self._call_tool.resume(command, asked.approval.id)
        if answer is None:  # another process starts the run
            return _BEING_CALLED
        if answer.waiting is not None:
            return WaitingState(status=TaskStatus.WORKING, message=waits_for(answer.waiting.approval))
        still = await self._asked(session, name)
        if still is not None:  # policy now denies the call
            await self._withdraw(session, still)
        return _ended(TaskStatus.FAILED, answer.result, self._clock.now())

    async def cancel(self, session: GatewaySession, name: TaskName) -> bool:
        """Withdraw the call. False if it is being executed."""
        asked = await self._asked(session, name)
        return asked is None or await self._withdraw(session, asked)

    async def _not_waiting(self, session: GatewaySession, name: TaskName) -> WaitingState:
        """The state of a call that does not wait: from the approval, or else from the ledger."""
        assert name.approval_id is not None
        approval = await self._approvals.get(session.organization_id, name.approval_id)
        if approval is None:
            raise task_not_found()
        at = approval.decided_at or approval.expires_at
        if approval.state is ApprovalState.CANCELLED:
            return _ended(TaskStatus.CANCELLED, ToolResult.blocked("task_cancelled", _CANCELLED), at)
        if approval.state in (ApprovalState.DENIED, ApprovalState.EXPIRED):
            return _ended(TaskStatus.FAILED, denied_result(approval.state, approval.reason), at)
        stored = await self._ledger.call_of(session.organization_id, session.id, name.call_id)
        settlement = None if stored is None else stored[1]
        if stored is not None and settlement is None:  # another process executes the call
            return _BEING_CALLED
        if settlement is not None and settlement.result.is_error:
            return _ended(TaskStatus.FAILED, settlement.result, at)
        return _ended(TaskStatus.FAILED, ToolResult.blocked("agent_not_called", _NOT_CALLED), at)

    async def _asked(self, session: GatewaySession, name: TaskName) -> AskedCall | None:
        waiting = await self._asking.asked(session.organization_id, session.id, name.tool)
        return next((asked for asked in waiting if asked.call.id == name.call_id), None)

    async def _withdraw(self, session: GatewaySession, asked: AskedCall) -> bool:
        now = self._clock.now()
        outcome = ApprovalOutcome(approval_id=asked.approval.id, state=ApprovalState.CANCELLED, at=now, by="system")
        await self._asking.end(asked.approval, outcome, ())
        # Only one process can begin a call: beginning it here stops all others.
        if not await self._asking.begin(asked, replace(asked.call, recorded_at=now)):
            return False
        result = ToolResult.blocked("task_cancelled", _CANCELLED)
        settlement = GatewaySettlement(call=asked.call, result=result, duration_ms=0, at=now)
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=None))
        self._wakeups.wake(session_approvals_topic(session.id))
        return True


def waits_for(approval: Approval) -> str:
    until = f"{approval.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"The call waits for an approval: {approval.id}, until {until}."


def _ended(status: TaskStatus, result: ToolResult, at: datetime) -> WaitingState:
    return WaitingState(status=status, message=result.text, result=result, at=at)


_BEING_CALLED = WaitingState(status=TaskStatus.WORKING, message="The agent is being called.")
_CANCELLED = "The task was cancelled before its agent was called."
_NOT_CALLED = "The agent was not called; the first answer about this task gave the reason."
