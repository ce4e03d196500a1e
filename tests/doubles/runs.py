"""Stored runs in memory, as the API sees them."""

from dataclasses import replace
from datetime import datetime

from application.runs.ports import (
    KEY_LIFETIME,
    CancelOutcome,
    IdempotencyKey,
    NewRun,
    RunFilter,
    RunOutcome,
    StartedRun,
    control_topic,
)
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalOutcome
from domain.errors import Violation, invalid, not_found
from domain.ids import OrganizationId, RunId
from domain.runs.closing import cancelled_step, displayed_step, lacks_display_only, waits_for_display_only
from domain.runs.events import RunEvent
from domain.runs.ledger import InputAnswer, Settlement, ToolCall
from domain.runs.resuming import going_on_step, resuming_step
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.run_events import run_queued
from domain.runs.step import Step
from domain.schedules.firing import schedule_moved
from domain.threads.message import Message
from tests.doubles.paging import by_time, newest_first
from tests.doubles.schedules import begin_run, where_seen
from tests.doubles.state import (
    InMemoryState,
    StoredRun,
    StoredThread,
    UsedKey,
    calls_in_order,
    number_events,
    refuse_if_quarantined,
    thread_busy,
    wake_followers,
)


class InMemoryRunStore:
    """The `RunStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED, settling or stopping the thread's unfinished runs as asked."""
        earlier = self._earlier(new)
        if earlier is not None:
            return StartedRun(run=earlier, created=False)
        fired = None if new.firing is None else where_seen(self._state, new.run.organization_id, new.firing)
        if new.firing is not None and fired is None:
            raise schedule_moved(new.firing.schedule_id)
        unfinished = self._unfinished(new)
        waiting = [stored for stored in unfinished if self._waits_for_display_only(stored)]
        others = [stored for stored in unfinished if stored not in waiting]
        if others and new.strategy is MultitaskStrategy.REJECT:
            raise thread_busy(others[0].run)

        if new.firing is not None and fired is not None:
            begin_run(self._state, fired, new.firing, new.run)
        if new.new_thread is not None:
            self._state.threads[new.new_thread.id] = StoredThread(thread=new.new_thread)
        for stored in waiting:
            self._apply(stored, displayed_step(stored.run, self._state.open_calls(stored), at=new.run.created_at))
        if new.strategy is MultitaskStrategy.ENQUEUE:
            for stored in filter(self._lacks_display_only, others):
                self._apply(stored, going_on_step(stored.run, at=new.run.created_at))
        interrupted = self._stop(others, new)
        ended = tuple(stored.run for stored in unfinished if stored.run.status.is_terminal)
        stored = StoredRun(run=new.run, webhook_url=new.webhook_url)
        self._state.runs[new.run.id] = stored
        number_events(stored, (run_queued(new.run, at=new.run.created_at),))
        if new.idempotency is not None:
            self._state.used_keys[new.run.organization_id, new.idempotency.key] = UsedKey(
                key=new.idempotency, run_id=new.run.id, used_at=new.run.created_at
            )
        wake_followers(self._wakeups, stored.run)
        first = self._state.next_run(new.run.thread_id)
        promoted = None if first == new.run.id else first
        return StartedRun(
            run=stored.run,
            created=True,
            interrupted=interrupted,
            ended=ended,
            promoted=promoted if unfinished else None,
        )

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key named before, as it stands."""
        return self._run_of_key(organization_id, key, at=at)

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        stored = self._state.run_of(organization_id, run_id)
        return None if stored is None else stored.run

    async def page(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> Page[Run]:
        """Runs, newest first."""
        runs = (
            stored.run
            for stored in self._state.runs.values()
            if stored.run.organization_id == organization_id
            and wanted.thread_id in (None, stored.run.thread_id)
            and wanted.agent_id in (None, stored.run.agent_id)
            and wanted.status in (None, stored.run.status)
        )
        return newest_first(runs, lambda run: by_time(run.created_at, run.id), request)

    async def messages(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
        """The run's own messages, in order."""
        stored = self._state.run_of(organization_id, run_id)
        if stored is None:
            return ()
        thread = self._state.threads[stored.run.thread_id]
        return tuple(message for message in thread.messages if message.run_id == run_id)

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        """The run with its messages, or None."""
        run = await self.get(organization_id, run_id)
        return None if run is None else RunOutcome(run=run, messages=await self.messages(organization_id, run_id))

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        """The run's ledger entries, in order."""
        stored = self._state.run_of(organization_id, run_id)
        return () if stored is None else calls_in_order(stored)

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Events with a higher seq, in order."""
        stored = self._state.run_of(organization_id, run_id)
        return () if stored is None else tuple(stored.events[after_seq : after_seq + limit])

    async def request_cancel(
        self, organization_id: OrganizationId, run_id: RunId, *, actor: str, at: datetime
    ) -> CancelOutcome | None:
        """Cancel a queued or waiting run, or mark one in progress."""
        stored = self._state.run_of(organization_id, run_id)
        if stored is None:
            return None
        promoted = self._cancel(stored, actor=actor, at=at)
        return CancelOutcome(run=stored.run, promoted=promoted)

    async def resume(
        self,
        organization_id: OrganizationId,
        run_id: RunId,
        settlements: tuple[Settlement, ...],
        *,
        answers: tuple[InputAnswer, ...] = (),
        outcomes: tuple[ApprovalOutcome, ...] = (),
        actor: str,
        at: datetime,
    ) -> Run:
        """Settle and answer waiting calls."""
        stored = self._state.run_of(organization_id, run_id)
        if stored is None:
            raise not_found("run", run_id)
        step = resuming_step(
            stored.run,
            self._state.open_calls(stored),
            settlements,
            answers,
            outcomes,
            queued_behind=len(self._state.unfinished(stored.run.thread_id)) > 1,
            actor=actor,
            at=at,
        )
        self._apply(stored, step)
        return stored.run

    def _earlier(self, new: NewRun) -> Run | None:
        if new.idempotency is None:
            return None
        return self._run_of_key(new.run.organization_id, new.idempotency, at=new.run.created_at)

    def _run_of_key(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        used = self._state.used_keys.get((organization_id, key.key))
        if used is None or at - used.used_at >= KEY_LIFETIME:
            return None
        if used.key.body_digest != key.body_digest:
            raise invalid(
                "idempotency_key_reused",
                "The idempotency key was used for another request.",
                Violation(path="Idempotency-Key", message="was used with another body"),
            )
        return self._state.runs[used.run_id].run

    def _unfinished(self, new: NewRun) -> list[StoredRun]:
        if new.new_thread is not None:
            return []
        if self._state.thread_of(new.run.organization_id, new.run.thread_id) is None:
            raise not_found("thread", new.run.thread_id)
        refuse_if_quarantined(self._state.threads[new.run.thread_id].thread)
        return self._state.unfinished(new.run.thread_id)

    def _waits_for_display_only(self, stored: StoredRun) -> bool:
        waits = stored.run.status is RunStatus.REQUIRES_ACTION
        return waits and waits_for_display_only(self._state.open_calls(stored))

    def _lacks_display_only(self, stored: StoredRun) -> bool:
        waits = stored.run.status is RunStatus.REQUIRES_ACTION
        return waits and lacks_display_only(self._state.open_calls(stored))

    def _stop(self, others: list[StoredRun], new: NewRun) -> tuple[RunId, ...]:
        if new.strategy not in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK):
            return ()
        for stored in others:
            stored.rolled_back = stored.rolled_back or new.strategy is MultitaskStrategy.ROLLBACK
            self._cancel(stored, actor=new.run.requested_by or "system", at=new.run.created_at)
        return tuple(stored.run.id for stored in others)

    def _cancel(self, stored: StoredRun, *, actor: str, at: datetime) -> RunId | None:
        run = stored.run
        if run.status.is_terminal:
            return None
        if run.status is RunStatus.IN_PROGRESS:
            stored.run = replace(run, cancel_requested_by=actor)
            self._wakeups.wake(control_topic(run.id))
            return None
        return self._apply(stored, cancelled_step(run, self._state.open_calls(stored), at=at, actor=actor))

    def _apply(self, stored: StoredRun, step: Step) -> RunId | None:
        outcome = self._state.apply(stored, step)
        wake_followers(self._wakeups, stored.run)
        return outcome.promoted
