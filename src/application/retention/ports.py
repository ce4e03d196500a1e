"""Ports of the retention slice: expired data, and the lock for the one process that removes it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from application.audit.ports import Month
from domain.gateway.call import GatewayCall, GatewaySettlement
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

    async def remove_notices(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` notices to the webhook of the inbox, stored before `before`, that
        are of no run, workflow run or MCP server: those of gateway sessions. Returns how many."""

    async def forget_idempotency_keys(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` keys that were used at `before` or earlier; returns how many."""

    async def forget_authorizations(self, before: datetime, *, limit: int) -> int:
        """Remove up to `limit` unfinished authorizations that expired before `before`; returns how
        many."""


ArchivedEntry: TypeAlias = Run | RunEvent | ToolCall | GatewayCall | GatewaySettlement


class RunArchive(Protocol):
    """Where runs and gateway calls are written before retention removes them."""

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId | None, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        """Write the entries of a thread (None: gateway calls of many threads) durably, each run
        before its events and these before its calls, and nothing if there are none. No more than a
        part is held in memory. Raises INTERNAL `archive_failed`."""


class ArchiveDrafts(Protocol):
    """Files that writers to the archive began."""

    async def remove(self, before: datetime) -> int:
        """Remove those that were not continued since then; how many."""


class FileState(StrEnum):
    """`without_manifest`: its writer ended before it was whole, or the manifest was taken away."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    WITHOUT_MANIFEST = "without_manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """What a file of the archive has, if it is as it was written."""

    state: FileState = FileState.WHOLE
    runs: int = 0
    events: int = 0
    tool_calls: int = 0
    gateway_calls: int = 0


class ArchivedRuns(Protocol):
    """Reads archived runs and gateway calls."""

    async def names(self) -> tuple[str, ...]:
        """All files, in order."""

    async def check(self, name: str) -> CheckedFile:
        """Whether a file is as its manifest says: digest, size and numbers, with each event and
        tool call behind its run, and events in their order."""


class RemovableCalls(Protocol):
    """Stored gateway calls in pages of up to `limit`, by session and id, behind the call
    `after`."""

    async def of_thread(
        self, organization_id: OrganizationId, thread_id: ThreadId, *, after: GatewayCall | None, limit: int
    ) -> tuple[GatewayCall | GatewaySettlement, ...]:
        """Calls of the thread's sessions, with their outcomes if known."""

    async def of_month(
        self, organization_id: OrganizationId, month: Month, *, after: GatewayCall | None, limit: int
    ) -> tuple[GatewaySettlement, ...]:
        """Settled calls of a month."""


class SweepLock(Protocol):
    """Lets one process sweep at a time."""

    def taken(self) -> AbstractAsyncContextManager[bool]:
        """Try to take the lock, which is held until the context ends. Never waits. Raises
        UNAVAILABLE `storage_unavailable`."""


class FreeSpace(Protocol):
    """Space of removed rows that the database holds for later ones."""

    async def give_back(self) -> bool:
        """Return a bounded part of it to the file system, in one transaction. Whether there is more
        to return."""


class MonthlyTables(Protocol):
    """Tables whose rows the database stores by the month of their ids, if it does."""

    async def add_months(self) -> None:
        """Have a place for the rows of this month and of the next ones. Raises UNAVAILABLE
        `storage_unavailable`, also if a table is in use for long."""

    async def remove_empty_months(self) -> int:
        """Remove the oldest months that have ended and have no rows; how many. Raises as
        `add_months`."""

    async def oldest_of_gateway_calls(self) -> Month | None:
        """The oldest month of gateway calls. None if none has ended, or calls are not stored by
        months."""

    async def removable_gateway_calls(self, month: Month, organizations: Sequence[OrganizationId]) -> str | None:
        """A mark of the calls that `remove_gateway_calls` would remove, which is another one for
        other calls. None if it would remove none."""

    async def remove_gateway_calls(
        self, month: Month, organizations: Sequence[OrganizationId], *, marked: str | None = None
    ) -> bool:
        """Remove the month with the settled calls of these organizations. Other calls of the month
        stay; if they are more than a tenth of it, nothing is removed. Whether it was. Raises as
        `add_months`, also if the month has changed meanwhile, or the calls are not those that were
        `marked`."""


class RunMonths(Protocol):
    """Events and tool calls of runs, stored by the month in which their runs were created, if the
    database does so."""

    async def oldest(self) -> Month | None:
        """The oldest month. None if none has ended, or they are not stored by months."""

    async def remove(self, month: Month, idle_before: Mapping[OrganizationId, datetime]) -> bool:
        """Remove the month with the events and tool calls of runs on threads of these organizations
        that have been idle since then, as `RetentionStore` says. Those of other runs stay; if they
        are more than a tenth of it and more than a few, nothing is removed. Whether it was. Raises
        UNAVAILABLE `storage_unavailable`, also if the tables are in use for long, or have changed
        meanwhile, or one of the threads is in use again."""


class ExpiringTools(Protocol):
    """Tools of workflow runs that are still registered."""

    async def expire(self, organization_id: OrganizationId, at: datetime, *, limit: int) -> int:
        """Remove the bound values of up to `limit` tools that have expired at `at`; returns how
        many."""
