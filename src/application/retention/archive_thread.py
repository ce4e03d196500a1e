"""ArchiveThread: write the runs and gateway calls of a thread to the archive before retention
removes them."""

from collections.abc import AsyncIterator, Sequence

from application.retention.ports import ArchivedEntry, RemovableCalls, RunArchive
from application.runs.ports import RunFilter, RunReader
from application.system.pages import PageRequest
from domain.gateway.call import GatewaySettlement
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.run import Run

RUNS = 20
EVENTS = 500


class ArchiveThread:
    """Rules:
    - All runs of the thread are written, with their events and tool calls, and the calls of its
      gateway sessions, page by page.
    - A thread that is archived again, as after a removal that was broken off, is written again with
      what is left of it.

    Raises: ServiceError archive_failed; then the thread must not be removed.
    """

    def __init__(
        self,
        *,
        archive: RunArchive,
        reader: RunReader,
        calls: RemovableCalls,
        runs: int = RUNS,
        events: int = EVENTS,
    ) -> None:
        self._archive = archive
        self._reader = reader
        self._calls = calls
        self._runs = runs
        self._events = events

    async def execute(self, organization_id: OrganizationId, thread_id: ThreadId) -> None:
        await self._archive.store(organization_id, thread_id, self._parts(organization_id, thread_id))

    async def _parts(
        self, organization_id: OrganizationId, thread_id: ThreadId
    ) -> AsyncIterator[Sequence[ArchivedEntry]]:
        async for runs in self._runs_of(organization_id, thread_id):
            yield runs
        after = None
        while calls := await self._calls.of_thread(organization_id, thread_id, after=after, limit=self._events):
            yield calls
            last = calls[-1]
            after = last.call if isinstance(last, GatewaySettlement) else last

    async def _runs_of(
        self, organization_id: OrganizationId, thread_id: ThreadId
    ) -> AsyncIterator[Sequence[ArchivedEntry]]:
        cursor: str | None = None
        while True:
            request = PageRequest(limit=self._runs, cursor=cursor)
            page = await self._reader.page(organization_id, RunFilter(thread_id=thread_id), request)
            for run in page.items:
                yield (run,)
                async for events in self._events_of(run):
                    yield events
                yield await self._reader.tool_calls(organization_id, run.id)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _events_of(self, run: Run) -> AsyncIterator[Sequence[RunEvent]]:
        after_seq = 0
        while events := await self._reader.events(run.organization_id, run.id, after_seq=after_seq, limit=self._events):
            yield events
            after_seq = events[-1].seq
            if after_seq >= run.last_seq:
                return
