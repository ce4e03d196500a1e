"""Writing into a claimed run, in memory."""

from dataclasses import replace

from application.runs.closing import cancelled_step
from application.runs.ports import Lease, LeaseLost, Step, StepOutcome, Wakeups
from domain.runs.events import NewEvent
from domain.runs.run import RunStatus
from infrastructure.memory.state import InMemoryState, StoredRun, number_events, wake_followers


class InMemoryRunJournal:
    """The `RunJournal` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        """Store a step."""
        stored = self._held(lease)
        outcome = self._state.apply(stored, replace(step, run=replace(step.run, epoch=lease.epoch)))
        if stored.run.status is RunStatus.REQUIRES_ACTION and stored.run.cancel_requested_by is not None:
            open_calls = self._state.open_calls(stored)
            stopped = cancelled_step(
                stored.run, open_calls, at=step.events[-1].at, actor=stored.run.cancel_requested_by
            )
            outcome = self._state.apply(stored, stopped)
        wake_followers(self._wakeups, stored.run)
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
