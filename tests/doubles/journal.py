"""Writing into a claimed run, in memory."""

from dataclasses import replace

from application.approvals.ports import TIMERS_TOPIC
from application.runs.ports import LeaseLost, StepOutcome
from application.system.wakeups import Wakeups
from domain.runs.closing import step_instead_of_waiting
from domain.runs.events import NewEvent
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.runs.step import Step
from tests.doubles.state import InMemoryState, StoredRun, number_events, wake_followers


class InMemoryRunJournal:
    """The `RunJournal` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        """Store a step."""
        stored = self._held(lease)
        outcome = self._state.apply(stored, replace(step, run=replace(step.run, epoch=lease.epoch, lapses=0)))
        if stored.run.status is RunStatus.REQUIRES_ACTION:
            ending = step_instead_of_waiting(
                stored.run,
                self._state.open_calls(stored),
                queued_behind=len(self._state.unfinished(lease.thread_id)) > 1,
                cancel_requested_by=stored.run.cancel_requested_by,
                at=step.events[-1].at,
            )
            if ending is not None:
                outcome = replace(self._state.apply(stored, ending), ending=ending)
        wake_followers(self._wakeups, stored.run)
        if step.approvals:
            self._wakeups.wake(TIMERS_TOPIC)
        return outcome

    async def append(self, lease: Lease, events: tuple[NewEvent, ...]) -> None:
        """Store events alone."""
        stored = self._held(lease)
        number_events(stored, events)
        wake_followers(self._wakeups, stored.run)

    async def cancel_requested_by(self, lease: Lease) -> str | None:
        """Who asked the worker to stop."""
        stored = self._state.held(lease)
        return "system" if stored is None else stored.run.cancel_requested_by

    def _held(self, lease: Lease) -> StoredRun:
        stored = self._state.held(lease)
        if stored is None:
            raise LeaseLost(lease.run_id)
        return stored
