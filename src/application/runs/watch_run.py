"""Watches a run: waiting for it and following its events are views of the stored run, woken by push."""

from collections.abc import AsyncGenerator

from application.identity.key_standing import KeyStanding
from application.runs.ports import RunStore, Wakeups, events_topic, status_topic
from application.system.ports import Clock
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus

REREAD_S = 5.0
"""The net under the wake-ups: how often a watcher looks even if nobody rang."""
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


class WatchRun:
    """Rules: needs the role viewer, and a key that still counts whenever something is told; a watcher that leaves harms nothing; events come in order, each once, from any point;
    watching ends when the run has ended or waits for somebody."""

    def __init__(self, *, runs: RunStore, keys: KeyStanding, wakeups: Wakeups, clock: Clock) -> None:
        self._runs = runs
        self._keys = keys
        self._wakeups = wakeups
        self._clock = clock

    async def wait(self, principal: Principal, run_id: RunId, *, timeout_s: float | None = None) -> Run:
        """The run once it has ended or waits, or as it is after `timeout_s`. Raises NOT_FOUND, UNAUTHENTICATED."""
        deadline = None if timeout_s is None else self._clock.monotonic() + timeout_s
        async with self._wakeups.subscribe(status_topic(run_id)) as bell:
            while True:
                run = await self._get(principal, run_id)
                await self._keys.require(principal)
                if _at_rest(run):
                    return run
                left_s = REREAD_S if deadline is None else min(REREAD_S, deadline - self._clock.monotonic())
                if left_s <= 0:
                    return run
                await bell.wait(left_s)

    async def follow(
        self, principal: Principal, run_id: RunId, *, after_seq: int = 0
    ) -> AsyncGenerator[RunEvent, None]:
        """Events after `after_seq`, stored ones first, then as they come. Raises NOT_FOUND, UNAUTHENTICATED."""
        run = await self._get(principal, run_id)
        seq = after_seq
        async with self._wakeups.subscribe(events_topic(run_id)) as bell:
            while True:
                events = await self._runs.events(principal.organization_id, run_id, after_seq=seq, limit=_PAGE)
                if events:
                    await self._keys.require(principal)
                for event in events:
                    yield event
                    seq = event.seq
                if len(events) == _PAGE:
                    continue
                if events and events[-1].type in _LAST_EVENTS:
                    return
                if not events:
                    run = await self._get(principal, run_id)
                    await self._keys.require(principal)
                    if _at_rest(run) and run.last_seq <= seq:
                        return
                elif _at_rest(run) and run.last_seq == seq:
                    return  # as it was found, with more written after it came to rest (results for some pending calls)
                await bell.wait(REREAD_S)

    async def _get(self, principal: Principal, run_id: RunId) -> Run:
        principal.require(Role.VIEWER)
        run = await self._runs.get(principal.organization_id, run_id)
        if run is None:
            raise not_found("run", run_id)
        return run


def _at_rest(run: Run) -> bool:
    return run.status.is_terminal or run.status is RunStatus.REQUIRES_ACTION
