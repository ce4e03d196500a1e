"""ArchiveThread: write the runs of a thread to the archive before retention removes them."""

from collections.abc import AsyncIterator

from application.retention.ports import ArchivedRun, RunArchive
from application.runs.ports import RunFilter, RunReader
from application.system.pages import PageRequest
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.run import Run

RUNS = 20
EVENTS = 500


class ArchiveThread:
    """Rules:
    - All runs of the thread are written, with their events and tool calls.
    - A thread that is archived again, as after a removal that was broken off, is written again with what is left of it.

    Raises: ServiceError archive_failed; then the thread must not be removed.
    """

    def __init__(self, *, archive: RunArchive, reader: RunReader, runs: int = RUNS, events: int = EVENTS) -> None:
        self._archive = archive
        self._reader = reader
        self._runs = runs
        self._events = events

    async def execute(self, organization_id: OrganizationId, thread_id: ThreadId) -> None:
        await self._archive.store(organization_id, thread_id, self._all_runs(organization_id, thread_id))

    async def _all_runs(self, organization_id: OrganizationId, thread_id: ThreadId) -> AsyncIterator[ArchivedRun]:
        cursor: str | None = None
        while True:
            request = PageRequest(limit=self._runs, cursor=cursor)
            page = await self._reader.page(organization_id, RunFilter(thread_id=thread_id), request)
            for run in page.items:
                yield ArchivedRun(
                    run=run,
                    events=await self._all_events(run),
                    calls=await self._reader.tool_calls(organization_id, run.id),
                )
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _all_events(self, run: Run) -> tuple[RunEvent, ...]:
        found: list[RunEvent] = []
        while not found or found[-1].seq < run.last_seq:
            after_seq = found[-1].seq if found else 0
            events = await self._reader.events(run.organization_id, run.id, after_seq=after_seq, limit=self._events)
            if not events:
                break
            found += events
        return tuple(found)
