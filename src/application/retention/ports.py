"""Ports of the retention slice: what has outlived its time, and whose turn it is to look for it."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.ids import OrganizationId, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPlace:
    """A place among an organization's threads by age."""

    created_at: datetime
    thread_id: ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleThreads:
    """A stretch of threads by age: those of them that are idle, and where the next stretch begins."""

    found: tuple[ThreadId, ...]
    next: ThreadPlace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was taken away, and whether there is `more` of the same."""

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
    """Taking away what has outlived its time. A thread is idle since `before` if nothing was added to it from that moment
    on: no message, source or run, and no run or gateway session has ended; one with an unfinished run, an open session, or in
    quarantine, is not idle."""

    async def idle_threads(
        self, organization_id: OrganizationId, before: datetime, *, after: ThreadPlace | None, limit: int
    ) -> IdleThreads:
        """Look through up to `limit` threads that were made before that moment, behind `after`, oldest first."""
        ...

    async def remove(self, organization_id: OrganizationId, thread_id: ThreadId, before: datetime) -> Removed:
        """Take a bounded part of an idle thread away: its sources, then run by run the oldest with its messages, events and
        calls, at last the thread. Nothing, and no `more`, if there is none or it is not idle any more."""
        ...

    async def remove_workflow_runs(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Take up to `limit` workflow runs away that ended before that moment, oldest first, with their nodes and events;
        after the last one of a workflow that was deleted before that moment, the workflow too. Returns how many runs."""
        ...

    async def forget_idempotency_keys(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        """Forget up to `limit` keys that were used at that moment or before; returns how many."""
        ...

    async def forget_authorizations(self, before: datetime, *, limit: int) -> int:
        """Forget up to `limit` authorizations that nobody came back from, and that expired before that moment; returns how
        many."""
        ...


class SweepLock(Protocol):
    """Makes one process at a time sweep."""

    def taken(self) -> AbstractAsyncContextManager[bool]:
        """Whether it is this one's turn, which then lasts until the context ends. Never waits. Raises UNAVAILABLE
        `storage_unavailable`."""
        ...
