"""Queries of runs."""

from application.runs.ports import CountedRuns, RunFilter, RunReader
from application.runs.queue_lines import QueueLine, QueueReader
from application.system.lru import LruCache
from application.system.pages import Page, PageRequest
from application.system.ports import Clock
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId, RunId
from domain.runs.events import RunEvent
from domain.runs.run import Run

RECENT_S = 1.0
_QUEUES = 1_000


class GetRun:
    """One run. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, run_id: RunId) -> Run:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return existing(await self._runs.get(principal.organization_id, run_id), "run", run_id)


class ListRuns:
    """Runs of the organization, newest first. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, wanted: RunFilter, request: PageRequest) -> Page[Run]:
        principal.require(Role.VIEWER)
        return await self._runs.page(principal.organization_id, wanted, request)


class ListChangedRuns:
    """Runs of the organization by their last change, newest first. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, wanted: RunFilter, request: PageRequest) -> CountedRuns:
        principal.require(Role.VIEWER)
        return await self._runs.by_change(principal.organization_id, wanted, request)


class GetQueue:
    """The lines of the organization's queue, or of all organizations'. Requires the role viewer; all require a platform key."""

    def __init__(self, *, lines: QueueReader, clock: Clock) -> None:
        self._lines = lines
        self._clock = clock
        self._read: LruCache[OrganizationId, tuple[float, tuple[QueueLine, ...]]] = LruCache(_QUEUES)

    async def execute(self, principal: Principal, *, of_all: bool = False) -> tuple[QueueLine, ...]:
        """Raises FORBIDDEN."""
        principal.require(Role.VIEWER)
        if of_all:
            principal.require_platform()
        return await self._lines.lines(None if of_all else principal.organization_id)

    async def recent(self, principal: Principal) -> tuple[QueueLine, ...]:
        """The organization's lines as they were up to RECENT_S ago, for pages that ask again and again."""
        principal.require(Role.VIEWER)
        now = self._clock.monotonic()
        known = self._read.get(principal.organization_id)
        if known is not None and now - known[0] < RECENT_S:
            return known[1]
        lines = await self._lines.lines(principal.organization_id)
        self._read.put(principal.organization_id, (now, lines))
        return lines


class GetRunEvents:
    """Stored events of a run. Requires the role viewer."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, run_id: RunId, *, after_seq: int, limit: int) -> Page[RunEvent]:
        """Events with a higher seq, in order. The cursor is the last one's seq, if there are or may be more. Raises
        NOT_FOUND."""
        principal.require(Role.VIEWER)
        run = existing(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        events = await self._runs.events(principal.organization_id, run_id, after_seq=after_seq, limit=limit)
        more = bool(events) and (len(events) == limit or events[-1].seq < run.last_seq)
        return Page(items=events, next_cursor=str(events[-1].seq) if more else None)
