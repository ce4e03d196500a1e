"""Decides approvals of runs: a decision resumes the run, an expiry denies the call."""

from application.runs.ports import RunQueue, RunStore
from application.runs.resume_run import ResumeRun, ResumeRunCommand
from application.system.ports import Clock
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.runs.resuming import Resumption
from domain.runs.run import RunStatus


class DecideRunApproval:
    """Rules:
    - A decision is the same as resuming the run with it; `ResumeRun` has the rules.
    - An expiry denies the call; the run is submitted once none of its calls is pending.
    - An approval that ended in the meantime stays as it is.
    """

    def __init__(self, *, resume_run: ResumeRun, runs: RunStore, queue: RunQueue, clock: Clock) -> None:
        self._resume_run = resume_run
        self._runs = runs
        self._queue = queue
        self._clock = clock

    async def execute(self, principal: Principal, approval: Approval, decision: CallDecision) -> None:
        """Raises what `ResumeRun` raises."""
        await self._resume_run.execute(
            ResumeRunCommand(principal=principal, run_id=_run_of(approval), approvals=(decision,))
        )

    async def expire(self, approval: Approval) -> bool:
        """Deny the call because the approval expired. False if the approval had ended before."""
        now = self._clock.now()
        outcome = ApprovalOutcome(approval_id=approval.id, state=ApprovalState.EXPIRED, at=now, by="system")
        try:
            resumption = Resumption(outcomes=(outcome,), actor="system", at=now)
            changed = await self._runs.change(approval.organization_id, _run_of(approval), resumption.decide)
        except ServiceError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            return False
        if changed is None:
            return False
        if changed.run.status is RunStatus.QUEUED:
            await self._queue.submit(changed.run.id)
        return True


def _run_of(approval: Approval) -> RunId:
    if approval.run_id is None:
        raise ValueError(f"approval {approval.id} belongs to no run")
    return approval.run_id
