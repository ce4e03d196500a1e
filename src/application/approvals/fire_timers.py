"""Handles due timers: expired approvals deny their calls."""

import logging

from application.approvals.ports import TIMERS_TOPIC, ApprovalDecider, ApprovalStore, TimerStore
from application.system.periodic import when_due
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalState
from domain.approvals.timer import Timer
from domain.ids import ApprovalId

logger = logging.getLogger(__name__)

REREAD_S = 30.0
"""Rereads after this time: another process may have added a timer."""
_RETRY_S = 5.0
_BATCH = 100


class FireTimers:
    """Rules:
    - A timer is handled once, in one transaction, by one of all processes.
    - A timer without a subject is removed.
    - A failed timer is retried and does not delay others.
    """

    def __init__(
        self,
        *,
        timers: TimerStore,
        approvals: ApprovalStore,
        of_run: ApprovalDecider,
        of_session: ApprovalDecider,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._timers = timers
        self._approvals = approvals
        self._of_run = of_run
        self._of_session = of_session
        self._wakeups = wakeups
        self._clock = clock

    async def execute(self) -> int:
        """Handle all due timers, also after a time without a service. Returns the number of
        successful ones."""
        now, fired = self._clock.now(), 0
        batch = await self._timers.due(at=now, limit=_BATCH)
        while batch:
            for timer in batch:
                fired += await self._fired(timer)
            # Continue after the last one, successful or not: failing timers must not fill the
            # batches.
            batch = await self._timers.due(at=now, limit=_BATCH, after=batch[-1]) if len(batch) == _BATCH else ()
        return fired

    async def keep(self) -> None:
        """Handle timers as they become due, until cancelled."""
        async with self._wakeups.subscribe(TIMERS_TOPIC) as added:
            await when_due(self._step, task="timers", retry_s=_RETRY_S, wait=added.wait)

    async def _step(self) -> float:
        await self.execute()
        return await self._time_to_next()

    async def _fired(self, timer: Timer) -> bool:
        try:
            await self._expire(timer)
        except Exception:
            logger.exception("a timer failed", extra={"timer_id": timer.id, "subject_id": timer.subject_id})
            return False
        return True

    async def _time_to_next(self) -> float:
        """Seconds to sleep. A timer that is still due has failed."""
        due_at = await self._timers.next_due()
        if due_at is None:
            return REREAD_S
        left_s = (due_at - self._clock.now()).total_seconds()
        return min(left_s if left_s > 0 else _RETRY_S, REREAD_S)

    async def _expire(self, timer: Timer) -> None:
        approval = await self._approvals.get(timer.organization_id, ApprovalId(timer.subject_id))
        if approval is None or approval.state is not ApprovalState.PENDING:
            await self._timers.remove(timer.id)
            return
        decider = self._of_session if approval.run_id is None else self._of_run
        if not await decider.expire(approval):
            await self._timers.remove(timer.id)
            return
        logger.info("approval expired", extra={"approval_id": approval.id, "run_id": approval.run_id})
