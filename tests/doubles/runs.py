"""Stored runs in memory, as the API sees them."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from application.runs.idempotency import UsedKey, named_run
from application.runs.new_run import IdempotencyKey, NewRun, StartedRun
from application.runs.ports import ChangedRun, CountedRuns, RunFilter, RunOrder, RunOutcome, control_topic
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from domain.errors import not_found
from domain.ids import OrganizationId, RunId
from domain.runs.admission import QueuedRuns, UserBound, require_active_place, require_place
from domain.runs.change import Decide, RunChange, RunFacts
from domain.runs.events import RunEvent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.starting import ThreadFacts
from domain.schedules.firing import schedule_moved
from domain.teams import Teams
from domain.threads.message import TextContent
from tests.doubles.owners import seen
from tests.doubles.paging import by_time, newest_first, oldest_first
from tests.doubles.schedules import begin_run, where_seen
from tests.doubles.state import (
    InMemoryState,
    StoredRun,
    StoredThread,
    calls_in_order,
    number_events,
    wake_followers,
    without_items,
)

_FIGURES: dict[RunOrder, Callable[[Run], int]] = {
    RunOrder.LONGEST: lambda run: int(run.took_s * 1_000_000),
    RunOrder.COSTLIEST: lambda run: int(run.usage.cost_usd * 1_000_000_000),
    RunOrder.MOST_TOKENS: lambda run: run.usage.tokens,
}


def _words_of(run: Run) -> str:
    texts = [part.text for part in run.input if isinstance(part, TextContent)]
    return "\n".join((*texts, run.output or "")).casefold()


def _has_metadata(run: Run, name: str, value: str) -> bool:
    found = run.metadata.get(name)
    return name in run.metadata and value == (found if isinstance(found, str) else json.dumps(found))


class InMemoryRunStore:
    """The `RunStore` and `RunReader` ports over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED, and what its start changes of the thread's unfinished runs."""
        state, run = self._state, new.run
        if new.idempotency is not None:
            earlier = self._run_of_key(run.organization_id, new.idempotency, at=run.created_at)
            if earlier is not None:
                return StartedRun(run=earlier, created=False)
        fired = None if new.firing is None else where_seen(state, run.organization_id, new.firing)
        if new.firing is not None and fired is None:
            raise schedule_moved(new.firing.schedule_id)
        if new.new_thread is None and (thread := state.thread_of(run.organization_id, run.thread_id)) is not None:
            new = new.on_thread_of(thread.thread.team)
            run = new.run
            thread.thread = replace(thread.thread, team=run.team)
        changes = () if new.new_thread is not None else new.decide(self._thread_facts(run))
        self._admit(new, {change.run.id: change.changed_run.status for change in changes})
        if new.firing is not None and fired is not None:
            begin_run(state, fired, new.firing, run)
        if new.new_thread is not None:
            state.threads[new.new_thread.id] = StoredThread(thread=new.new_thread, messages=list(new.history))
        changed = tuple(self._store(change).run for change in changes)
        url = new.webhook_url if run.retry_of is None else state.runs[run.retry_of].webhook_url
        stored = state.runs[run.id] = StoredRun(run=run, webhook_url=url)
        number_events(stored, (new.event,))
        if new.idempotency is not None:
            state.used_keys[run.organization_id, new.idempotency.key] = UsedKey(
                body_digest=new.idempotency.body_digest, run_id=run.id, used_at=run.created_at
            )
        wake_followers(self._wakeups, stored.run)
        return StartedRun.after(stored.run, changed, first=state.next_run(run.thread_id))

    def _admit(self, new: NewRun, changed: dict[RunId, RunStatus]) -> None:
        """`changed` are the new states of the runs that the start changes."""
        queued = [
            stored.run
            for stored in self._state.runs.values()
            if stored.run.organization_id == new.run.organization_id
            and changed.get(stored.run.id, stored.run.status) is RunStatus.QUEUED
        ]
        own = [run for run in queued if run.agent_id == new.run.agent_id]
        for owner, limit, runs in (
            ("organization", new.admission.organization, queued),
            ("agent", new.admission.agent, own),
        ):
            if limit is not None:
                since = min((run.created_at for run in runs if run.started_at is None), default=None)
                require_place(owner, limit, QueuedRuns(count=len(runs), since=since), at=new.run.created_at)
        if (bound := new.admission.of_user) is not None:
            require_active_place(
                bound, sum(self._is_active(each.run, new, bound, changed) for each in self._state.runs.values())
            )

    def _is_active(self, run: Run, new: NewRun, bound: UserBound, changed: dict[RunId, RunStatus]) -> bool:
        return (
            run.organization_id == new.run.organization_id
            and not (new.strategy.stops_others and run.thread_id == new.run.thread_id)
            and self._state.counts_for(run.requested_by, bound.user_id, with_keys=bound.with_keys)
            and changed.get(run.id, run.status) in (RunStatus.QUEUED, RunStatus.IN_PROGRESS)
        )

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key named before, as it stands."""
        return self._run_of_key(organization_id, key, at=at)

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        stored = self._state.run_of(organization_id, run_id)
        return None if stored is None else stored.run

    async def page(
        self,
        organization_id: OrganizationId,
        wanted: RunFilter,
        request: PageRequest,
        order: RunOrder = RunOrder.NEWEST,
    ) -> Page[Run]:
        """Runs in this order."""
        runs = seen(self._state, request.teams, self._wanted(organization_id, wanted), lambda run: run.id)
        if order in _FIGURES:
            figure = _FIGURES[order]
            return newest_first(runs, lambda run: (f"{figure(run):020}", run.id), request)
        paged = oldest_first if order is RunOrder.OLDEST else newest_first
        return paged(runs, lambda run: by_time(run.created_at, run.id), request)

    async def count(self, organization_id: OrganizationId, wanted: RunFilter, *, most: int, teams: Teams = None) -> int:
        """How many runs there are, at most `most`."""
        return min(len(seen(self._state, teams, self._wanted(organization_id, wanted), lambda run: run.id)), most)

    async def by_change(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> CountedRuns:
        """Runs by when they ended, otherwise began or were created; newest first."""
        runs = seen(self._state, request.teams, self._wanted(organization_id, wanted), lambda run: run.id)
        page = newest_first(runs, lambda run: by_time(run.changed_at, run.id), request)
        return CountedRuns(page=page, total=len(runs))

    def _wanted(self, organization_id: OrganizationId, wanted: RunFilter) -> list[Run]:
        return [
            stored.run
            for stored in self._state.runs.values()
            if stored.run.organization_id == organization_id
            and wanted.thread_id in (None, stored.run.thread_id)
            and wanted.agent_id in (None, stored.run.agent_id)
            and wanted.status in (None, stored.run.status)
            and (not wanted.statuses or stored.run.status in wanted.statuses)
            and (wanted.changed_since is None or stored.run.changed_at > wanted.changed_since)
            and wanted.history_key in (None, stored.run.history_key)
            and wanted.model in (None, stored.run.model)
            and wanted.error in (None, None if stored.run.error is None else stored.run.error.code)
            and wanted.started_by in (None, stored.run.requested_by)
            and (wanted.since is None or stored.run.created_at >= wanted.since)
            and (wanted.until is None or stored.run.created_at < wanted.until)
            and (wanted.tool is None or any(call.name == wanted.tool for call in stored.calls.values()))
            and (wanted.text is None or wanted.text.casefold() in _words_of(stored.run))
            and (wanted.metadata is None or _has_metadata(stored.run, *wanted.metadata))
        ]

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        """The run with its messages, or None."""
        stored = self._state.run_of(organization_id, run_id)
        if stored is None:
            return None
        thread = self._state.threads[stored.run.thread_id]
        own = tuple(message for message in thread.messages if message.run_id == run_id)
        return RunOutcome(run=stored.run, messages=without_items(own))

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

    async def change(self, organization_id: OrganizationId, run_id: RunId, decide: Decide) -> ChangedRun | None:
        """Store a decision about a run."""
        stored = self._state.run_of(organization_id, run_id)
        if stored is None:
            return None
        change = decide(self._facts(stored))
        return ChangedRun(run=stored.run) if change is None else self._store(change)

    def _run_of_key(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        run_id = named_run(key, self._state.used_keys.get((organization_id, key.key)), at=at)
        return None if run_id is None else self._state.runs[run_id].run

    def _thread_facts(self, new: Run) -> ThreadFacts:
        stored = self._state.thread_of(new.organization_id, new.thread_id)
        if stored is None:
            raise not_found("thread", new.thread_id)
        quarantine = stored.thread.quarantine
        runs = [one.run for one in self._state.runs.values() if one.run.thread_id == new.thread_id]
        return ThreadFacts(
            quarantined_by=None if quarantine is None else quarantine.run_id,
            unfinished=tuple(self._facts(one) for one in self._state.unfinished(new.thread_id)),
            newest=max(runs, key=lambda run: (run.created_at, run.id)).id if runs else None,
        )

    def _facts(self, stored: StoredRun) -> RunFacts:
        queued_behind = len(self._state.unfinished(stored.run.thread_id)) > 1
        return RunFacts(run=stored.run, open_calls=self._state.open_calls(stored), queued_behind=queued_behind)

    def _store(self, change: RunChange) -> ChangedRun:
        stored = self._state.runs[change.run.id]
        stored.rolled_back = stored.rolled_back or change.rolls_back
        if change.step is None:
            stored.run = change.changed_run
            self._wakeups.wake(control_topic(stored.run.id))
            return ChangedRun(run=stored.run)
        outcome = self._state.apply(stored, change.step)
        wake_followers(self._wakeups, stored.run)
        return ChangedRun(run=stored.run, promoted=outcome.promoted)
