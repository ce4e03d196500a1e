"""MaintainMonths: add months to tables before they begin, and remove those that are no longer
needed."""

import logging
from datetime import datetime, timedelta

from application.audit.ports import AuditMonths, Month
from application.audit.remove_audit_month import RemoveAuditMonth, RemoveAuditMonthCommand
from application.identity.ports import OrganizationStore
from application.retention.archive_calls import ArchiveCalls, ArchiveCallsCommand
from application.retention.ports import MonthlyTables, RunMonths
from application.system.pages import PageRequest
from application.system.ports import Clock
from domain.ids import OrganizationId

logger = logging.getLogger(__name__)

ORGANIZATIONS = 100


class MaintainMonths:
    """Rules:
    - The present month and the next ones are there before their rows.
    - A month is removed at once, with the audit entries or the settled gateway calls of all
      organizations whose `retention_days` have passed since its end, if that is nearly all of it.
      Otherwise entries are pruned one by one, and calls go with their sessions.
    - A month of events and tool calls of runs is removed at once, with those on threads that
      retention is about to remove, if that is nearly all of it. Otherwise, and where runs are
      archived (no `run_months`), they go with their threads.
    - With an archive (`archive_calls`), gateway calls are written there before their month goes.
    - The oldest month is removed first, and none while an older one stays.
    - A month without rows is removed.
    - An error of one of these does not stop the others.

    Raises: the first error, such as ServiceError storage_unavailable if a table is in use for long,
    audit_chain_broken.
    """

    def __init__(
        self,
        *,
        organizations: OrganizationStore,
        tables: MonthlyTables,
        run_months: RunMonths | None,
        audit_months: AuditMonths,
        remove_audit_month: RemoveAuditMonth,
        clock: Clock,
        archive_calls: ArchiveCalls | None = None,
    ) -> None:
        self._organizations = organizations
        self._tables = tables
        self._run_months = run_months
        self._audit_months = audit_months
        self._remove_audit_month = remove_audit_month
        self._clock = clock
        self._archive_calls = archive_calls

    async def execute(self) -> None:
        first: Exception | None = None
        for step in (
            self._tables.add_months,
            self._remove_audit_months,
            self._remove_months_of_calls,
            self._remove_months_of_runs,
            self._tables.remove_empty_months,
        ):
            try:
                await step()
            except Exception as error:
                if first is not None:
                    logger.warning("months of another table cannot be maintained either", exc_info=error)
                first = first or error
        if first is not None:
            raise first

    async def _remove_audit_months(self) -> None:
        while (month := await self._audit_months.oldest()) is not None:
            released = await self._released(month)
            command = RemoveAuditMonthCommand(month=month, organizations=tuple(released))
            if not released or not await self._remove_audit_month.execute(command):
                return

    async def _remove_months_of_calls(self) -> None:
        while (month := await self._tables.oldest_of_gateway_calls()) is not None:
            released = await self._released(month)
            if not released or not await self._remove_calls(month, tuple(released)):
                return

    async def _remove_calls(self, month: Month, organizations: tuple[OrganizationId, ...]) -> bool:
        if self._archive_calls is None:
            return await self._tables.remove_gateway_calls(month, organizations)
        mark = await self._archive_calls.execute(ArchiveCallsCommand(month=month, organizations=organizations))
        return mark is not None and await self._tables.remove_gateway_calls(month, organizations, marked=mark)

    async def _remove_months_of_runs(self) -> None:
        months = self._run_months
        while months is not None and (month := await months.oldest()) is not None:
            released = await self._released(month)
            if not released or not await months.remove(month, released):
                return

    async def _released(self, month: Month) -> dict[OrganizationId, datetime]:
        """Organizations that need nothing from before the month's end, and from when on each needs
        everything."""
        released: dict[OrganizationId, datetime] = {}
        now = self._clock.now()
        cursor: str | None = None
        while True:
            page = await self._organizations.page(PageRequest(limit=ORGANIZATIONS, cursor=cursor))
            for one in page.items:
                if one.retention_days is not None and month.ends <= now - timedelta(days=one.retention_days):
                    released[one.id] = now - timedelta(days=one.retention_days)
            cursor = page.next_cursor
            if cursor is None:
                return released
