"""Queries of runs."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

from application.runs.ports import CountedRuns, RunFilter, RunOrder, RunReader
from application.runs.queue_lines import QueueLine, QueueReader
from application.system.lru import LruCache
from application.system.pages import Page, PageRequest
from application.system.ports import Clock
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId, RunId
from domain.runs.events import RunEvent
from domain.runs.run import Run
from domain.teams import Teams

RECENT_S = 1.0
_QUEUES = 1_000
MOST_COUNTED = 1_000
_EXPORTED = 200


class GetRun:
    """One run. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, run_id: RunId) -> Run:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)


class ListRuns:
    """Runs of the organization. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(
        self, principal: Principal, wanted: RunFilter, request: PageRequest, order: RunOrder = RunOrder.NEWEST
    ) -> Page[Run]:
        principal.require(Role.VIEWER)
        return await self._runs.page(principal.organization_id, wanted, request.seen_by(principal), order)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """A number of runs, up to `MOST_COUNTED`; `has_more`: there are more."""

    number: int
    has_more: bool = False


class CountRuns:
    """Requires the role viewer. Counts no further than `MOST_COUNTED`, and among the `SEARCHED`
    newest runs where no index has the runs that are wanted (`RunReader.count`)."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, wanted: RunFilter) -> RunCount:
        principal.require(Role.VIEWER)
        found = await self._runs.count(
            principal.organization_id, wanted, most=MOST_COUNTED + 1, teams=principal.visible_teams
        )
        return RunCount(number=min(found, MOST_COUNTED), has_more=found > MOST_COUNTED)


class ExportRuns:
    """Rules:
    - Requires the role viewer.
    - Memory is bounded: runs are read page by page.
    - Sorted by a figure, it has the `SEARCHED` newest runs of those that were created before it
      began. A run whose figure changes meanwhile may be missing, or be there twice.
    """

    def __init__(self, *, runs: RunReader, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock

    def execute(
        self, principal: Principal, wanted: RunFilter, order: RunOrder = RunOrder.NEWEST
    ) -> AsyncIterator[tuple[Run, ...]]:
        """All runs in parts. Raises FORBIDDEN on the call and not during iteration."""
        principal.require(Role.VIEWER)
        return self._parts(principal, wanted, order)

    async def _parts(self, principal: Principal, wanted: RunFilter, order: RunOrder) -> AsyncIterator[tuple[Run, ...]]:
        request = PageRequest(limit=_EXPORTED).seen_by(principal)
        if order.is_by_figure:  # Otherwise runs that start meanwhile would move others out of the newest.
            began = self._clock.now() + timedelta.resolution
            wanted = replace(wanted, until=began if wanted.until is None else min(wanted.until, began))
        while True:
            page = await self._runs.page(principal.organization_id, wanted, request, order)
            yield page.items
            if page.next_cursor is None:
                return
            request = request.next(page.next_cursor)


class ListChangedRuns:
    """Runs of the organization by their last change, newest first. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, wanted: RunFilter, request: PageRequest) -> CountedRuns:
        principal.require(Role.VIEWER)
        return await self._runs.by_change(principal.organization_id, wanted, request.seen_by(principal))


class GetQueue:
    """The lines of the organization's queue, or of all organizations'. Requires the role viewer;
    all require a platform key."""

    def __init__(self, *, lines: QueueReader, clock: Clock) -> None:
        self._lines = lines
        self._clock = clock
        self._read: LruCache[tuple[OrganizationId, Teams], tuple[float, tuple[QueueLine, ...]]] = LruCache(_QUEUES)

    async def execute(self, principal: Principal, *, of_all: bool = False) -> tuple[QueueLine, ...]:
        """Raises FORBIDDEN."""
        principal.require(Role.VIEWER)
        if of_all:
            principal.require_platform()
        if of_all:
            return await self._lines.lines(None)
        return await self._lines.lines(principal.organization_id, teams=principal.visible_teams)

    async def recent(self, principal: Principal) -> tuple[QueueLine, ...]:
        """The organization's lines as they were up to RECENT_S ago, for pages that ask again and
        again."""
        principal.require(Role.VIEWER)
        now = self._clock.monotonic()
        whose = principal.organization_id, principal.visible_teams
        known = self._read.get(whose)
        if known is not None and now - known[0] < RECENT_S:
            return known[1]
        lines = await self._lines.lines(principal.organization_id, teams=principal.visible_teams)
        self._read.put(whose, (now, lines))
        return lines


class GetRunEvents:
    """Stored events of a run. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, run_id: RunId, *, after_seq: int, limit: int) -> Page[RunEvent]:
        """Events with a higher seq, in order. The cursor is the last one's seq, if there are or may
        be more. Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        run = principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        events = await self._runs.events(principal.organization_id, run_id, after_seq=after_seq, limit=limit)
        more = bool(events) and (len(events) == limit or events[-1].seq < run.last_seq)
        return Page(items=events, next_cursor=str(events[-1].seq) if more else None)
