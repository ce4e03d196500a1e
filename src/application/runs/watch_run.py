"""Watches a run: waits for it and follows its events, as views of the stored run woken by
signals."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from application.identity.key_validity import KeyValidity, access_topics
from application.metrics.ports import EventMeter
from application.runs.ports import RunOutcome, RunReader, events_topic, status_topic
from application.runs.shared_events import SharedEvents
from application.system.ports import Clock
from application.system.wakeups import Subscription, Wakeups
from domain.errors import ServiceError, is_storage_away, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from domain.teams import sees

T = TypeVar("T")

REREAD_S = 5.0
"""Rereads after this time in case a wake-up was lost."""
AWAY_PATIENCE_S = 60.0
"""How long a watcher continues without the database before its client gets an error."""
_AWAY_PAUSE_S = 0.5
_PAGE = 500
_LAST_EVENTS = frozenset(
    {
        RunEventType.RUN_REQUIRES_ACTION,
        RunEventType.RUN_COMPLETED,
        RunEventType.RUN_INCOMPLETE,
        RunEventType.RUN_FAILED,
        RunEventType.RUN_CANCELLED,
        RunEventType.RUN_HALTED,
    }
)
_ENDS = _LAST_EVENTS - {RunEventType.RUN_REQUIRES_ACTION}


class WatchRun:
    """Rules:
    - Requires the role viewer, and a valid key whenever something is sent.
    - Events come in order, each once, from any point.
    - Watching ends when the run has ended or is suspended. It survives a minute without the
      database.
    - A watcher that leaves has no effect. One whose key, user or session is no longer valid ends at
      once, also while nothing happens.
    """

    def __init__(
        self, *, runs: RunReader, keys: KeyValidity, wakeups: Wakeups, clock: Clock, meter: EventMeter
    ) -> None:
        self._runs = runs
        self._events = SharedEvents(runs=runs)
        self._keys = keys
        self._wakeups = wakeups
        self._clock = clock
        self._meter = meter

    def listening(self, run_id: RunId) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe to the run's end or suspension before it is started, for `wait_for_new`."""
        return self._wakeups.subscribe(status_topic(run_id))

    async def wait_for_new(self, principal: Principal, run_id: RunId, woken: Subscription) -> RunOutcome:
        """As `wait`, for a run started after the subscription: nothing to read before a signal."""
        await woken.wait(REREAD_S)
        return await self._outcome(principal, run_id, woken, timeout_s=None)

    async def wait(self, principal: Principal, run_id: RunId, *, timeout_s: float | None = None) -> RunOutcome:
        """The run with its messages once it has ended or is suspended, or after `timeout_s`. Raises
        NOT_FOUND, UNAUTHENTICATED."""
        async with self._wakeups.subscribe(status_topic(run_id), *access_topics(principal)) as woken:
            return await self._outcome(principal, run_id, woken, timeout_s=timeout_s)

    async def _outcome(
        self, principal: Principal, run_id: RunId, woken: Subscription, *, timeout_s: float | None
    ) -> RunOutcome:
        deadline = None if timeout_s is None else self._clock.monotonic() + timeout_s
        while True:
            outcome = await self._read(woken, lambda: self._told(principal, run_id))
            if _at_rest(outcome.run):
                return outcome
            left_s = REREAD_S if deadline is None else min(REREAD_S, deadline - self._clock.monotonic())
            if left_s <= 0:
                return outcome
            await woken.wait(left_s)

    async def follow(
        self, principal: Principal, run_id: RunId, *, after_seq: int = 0, to_the_end: bool = False
    ) -> AsyncGenerator[tuple[RunEvent, ...], None]:
        """Events after `after_seq`: stored ones first, then new ones as they come, in batches.
        `to_the_end` continues beyond suspensions. Raises NOT_FOUND, UNAUTHENTICATED."""
        rests, last_events = (_is_over, _ENDS) if to_the_end else (_at_rest, _LAST_EVENTS)
        run = await self._get(principal, run_id)
        seq, live = after_seq, False

        async def events_after(last: int) -> tuple[RunEvent, ...]:
            found = await self._events.after(principal.organization_id, run_id, after_seq=last, limit=_PAGE)
            if found:
                await self._require_seen(principal, run)
            return found

        async with self._wakeups.subscribe(events_topic(run_id), *access_topics(principal)) as woken:
            while True:
                events = await self._read(woken, partial(events_after, seq))
                if events:
                    self._count_sent(events if live else ())
                    yield events
                    seq = events[-1].seq
                if len(events) == _PAGE or (events and seq < run.last_seq):
                    continue  # large messages end a page before its limit
                if events and (events[-1].type in last_events or (rests(run) and run.last_seq == seq)):
                    return  # the run may have more events after its suspension (results for some pending calls)
                if not events:
                    run = await self._read(woken, lambda: self._shown(principal, run_id))
                    if rests(run):
                        if run.last_seq <= seq or not await self._read(woken, partial(events_after, seq)):
                            return  # without the rest, if retention has removed it with its month
                        continue
                await woken.wait(REREAD_S)
                live = True

    def _count_sent(self, events: tuple[RunEvent, ...]) -> None:
        for event in events:
            self._meter.event_sent(at=event.at)

    async def _read(self, woken: Subscription, read: Callable[[], Awaitable[T]]) -> T:
        """The result of `read` once the database is available."""
        until = self._clock.monotonic() + AWAY_PATIENCE_S
        while True:
            try:
                return await read()
            except ServiceError as error:
                if not is_storage_away(error) or self._clock.monotonic() >= until:
                    raise
            await woken.wait(_AWAY_PAUSE_S)

    async def _shown(self, principal: Principal, run_id: RunId) -> Run:
        run = await self._get(principal, run_id)
        await self._require_seen(principal, run)
        return run

    async def _told(self, principal: Principal, run_id: RunId) -> RunOutcome:
        principal.require(Role.VIEWER)
        outcome = principal.found(await self._runs.outcome(principal.organization_id, run_id), "run", run_id)
        await self._require_seen(principal, outcome.run)
        return outcome

    async def _require_seen(self, principal: Principal, run: Run) -> None:
        if not sees(await self._keys.require(principal), run.team):
            raise not_found("run", run.id)

    async def _get(self, principal: Principal, run_id: RunId) -> Run:
        principal.require(Role.VIEWER)
        return principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)


def _at_rest(run: Run) -> bool:
    return run.status.is_terminal or run.status is RunStatus.REQUIRES_ACTION


def _is_over(run: Run) -> bool:
    return run.status.is_terminal
