"""Ports of the retention slice: expired data, and the lock for the one process that removes it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from application.audit.ports import Month
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPlace:
    """A position among an organization's threads by age."""

    created_at: datetime
    thread_id: ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleThreads:
    """The idle threads in a section of all threads by age, and the start of the next section."""

    found: tuple[ThreadId, ...]
    next: ThreadPlace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was removed, and whether there is `more` to remove."""

    threads: int = 0
    runs: int = 0
    messages: int = 0
    sources: int = 0
    more: bool = False

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(
            threads=self.threads + other.threads,
            runs=self.runs + other.runs,
            messages=self.messages + other.messages,
            sources=self.sources + other.sources,
            more=other.more,
        )


class RetentionStore(Protocol):
    """Removes expired data.

    A thread is idle since `before` if from then on no message, source or run was added and no run
    or gateway session ended. A thread with an unfinished run, an open session, or in quarantine is
    never idle.
    """

    async def idle_threads(
        self, organization_id: OrganizationId, before: datetime, *, after: ThreadPlace | None, limit: int
    ) -> IdleThreads:
        """Scan up to `limit` threads created before `before`, after the position `after`, oldest
        first."""

    async def remove(self, organization_id: OrganizationId, thread_id: ThreadId, before: datetime) -> Removed:
        """Remove a bounded part of an idle thread: its sources, then its runs with messages, events
        and calls, oldest first, finally the thread. Removes nothing, and returns no `more`, if the
        thread is gone or no longer idle."""

    async def remove_workflow_runs(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` workflow runs that ended before `before`, oldest first, with nodes
        and events. A workflow that was deleted before then is removed after its last run. Returns
        how many runs were removed."""

    async def forget_idempotency_keys(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` keys that were used at `before` or earlier; returns how many."""

    async def forget_authorizations(self, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` unfinished authorizations that expired before `before`; returns how
        many."""


ArchivedEntry: TypeAlias = Run | RunEvent | ToolCall


class RunArchive(Protocol):
    """Where runs are written before retention removes them."""

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        """Write the runs of a thread durably, each before its events and these before its calls, and nothing if there are
        none. No more than a part is held in memory. Raises INTERNAL `archive_failed`."""


class SweepLock(Protocol):
    """Lets one process sweep at a time."""

    def taken(self) -> AbstractAsyncContextManager[bool]:
        """Try to take the lock, which is held until the context ends. Never waits. Raises
        UNAVAILABLE `storage_unavailable`."""


class FreeSpace(Protocol):
    """Space of removed rows that the database holds for later ones."""

    async def give_back(self) -> bool:
        """Return a bounded part of it to the file system, in one transaction. Whether there is more to return."""


class MonthlyTables(Protocol):
    """Tables whose rows the database stores by the month of their ids, if it does."""

    async def add_months(self) -> None:
        """Have a place for the rows of this month and of the next ones. Raises UNAVAILABLE `storage_unavailable`, also if a table
        is in use for long."""

    async def remove_empty_months(self) -> int:
        """Remove the oldest months that have ended and have no rows; how many. Raises as `add_months`."""

    async def oldest_of_gateway_calls(self) -> Month | None:
        """The oldest month of gateway calls. None if none has ended, or calls are not stored by months."""

    async def remove_gateway_calls(self, month: Month, organizations: Sequence[OrganizationId]) -> bool:
        """Remove the month with the settled calls of these organizations. Other calls of the month stay; if they are more than a
        tenth of it, nothing is removed. Whether it was. Raises as `add_months`, also if the month has changed meanwhile."""


class RunMonths(Protocol):
    """Events and tool calls of runs, stored by the month in which their runs were created, if the database does so."""

    async def oldest(self) -> Month | None:
        """The oldest month. None if none has ended, or they are not stored by months."""

    async def remove(self, month: Month, idle_before: Mapping[OrganizationId, datetime]) -> bool:
        """Remove the month with the events and tool calls of runs on threads of these organizations that have been idle since
        then, as `RetentionStore` says. Those of other runs stay; if they are more than a tenth of it and more than a few,
        nothing is removed. Whether it was. Raises UNAVAILABLE `storage_unavailable`, also if the tables are in use for long, or have
        changed meanwhile, or one of the threads is in use again."""


class ExpiringTools(Protocol):
    """Tools of workflow runs that are still registered."""

    async def expire(self, organization_id: OrganizationId, at: datetime, *, limit: int) -> int:
        """Remove the bound values of up to `limit` tools that have expired at `at`; returns how many."""
