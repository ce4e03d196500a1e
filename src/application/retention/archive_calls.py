"""ArchiveCalls: write a month of gateway calls to the archive before retention removes it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from application.audit.ports import Month
from application.retention.ports import ArchivedEntry, MonthlyTables, RemovableCalls, RunArchive
from domain.ids import OrganizationId

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveCallsCommand:
    """`organizations` need no call from before the month's end."""

    month: Month
    organizations: tuple[OrganizationId, ...]


class ArchiveCalls:
    """Rules:
    - All settled calls of the month that would be removed are written, page by page, a file for
      each organization.
    - If the month would stay, nothing is written.

    Raises: ServiceError archive_failed; then the month must not be removed.
    """

    def __init__(self, *, archive: RunArchive, calls: RemovableCalls, tables: MonthlyTables, page: int = PAGE) -> None:
        self._archive = archive
        self._calls = calls
        self._tables = tables
        self._page = page

    async def execute(self, command: ArchiveCallsCommand) -> str | None:
        """A mark of the calls that were written, for `MonthlyTables.remove_gateway_calls`. None if
        the month stays."""
        # Settled calls only get more until they are removed: with the same mark at the end, those
        # read between were all.
        mark = await self._tables.removable_gateway_calls(command.month, command.organizations)
        if mark is not None:
            for organization_id in command.organizations:
                await self._archive.store(organization_id, None, self._parts(organization_id, command.month))
        return mark

    async def _parts(self, organization_id: OrganizationId, month: Month) -> AsyncIterator[Sequence[ArchivedEntry]]:
        after = None
        while calls := await self._calls.of_month(organization_id, month, after=after, limit=self._page):
            yield calls
            after = calls[-1].call
