"""Queries of runs."""

from application.runs.ports import CountedRuns, RunFilter, RunReader
from application.runs.queue_lines import QueueLine, QueueReader
from application.system.pages import Page, PageRequest
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.events import RunEvent
from domain.runs.run import Run


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

    def __init__(self, *, lines: QueueReader) -> None:
        self._lines = lines

    async def execute(self, principal: Principal, *, of_all: bool = False) -> tuple[QueueLine, ...]:
        """Raises FORBIDDEN."""
        principal.require(Role.VIEWER)
        if of_all:
            principal.require_platform()
        return await self._lines.lines(None if of_all else principal.organization_id)


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
