"""Ports of the threads slice."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import Principal
from domain.ids import ApiKeyId, OrganizationId, RunId, ThreadId
from domain.teams import Teams
from domain.threads.message import Message
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedThread:
    """The thread without its quarantine. `promoted` is the run that waited for the release and can
    start now."""

    thread: Thread
    promoted: RunId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedThread:
    """A fork, and the message of the other thread that it replaces; None where all messages were
    copied."""

    thread: Thread
    replaced: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A thread with the beginning of its first message: its title. `opening` is None without such a
    text."""

    thread: Thread
    opening: str | None


class ThreadStore(Protocol):
    """Threads and their messages. A thread of another organization does not exist."""

    async def add(self, thread: Thread) -> None:
        """Store a new thread. Raises CONFLICT `team_gone` without a group of the name of its
        team."""

    async def get(self, organization_id: OrganizationId, thread_id: ThreadId) -> Thread | None:
        """The thread, or None."""

    async def fork(self, new: Thread) -> Message | None:
        """Store a new thread with copies of the messages before its fork point: with their ids and
        items, without their runs. Returns the message at the fork point, None after all messages.
        Raises NOT_FOUND without the thread or the message, INVALID `fork_place_invalid`, CONFLICT
        `thread_quarantined`, and `thread_busy` where all messages are copied while a run is
        unfinished."""

    async def conversations(
        self,
        organization_id: OrganizationId,
        search: str,
        request: PageRequest,
        *,
        forked_from: ThreadId | None = None,
    ) -> Page[Conversation]:
        """Threads by the beginning of their first message, newest first. With `search` only those
        with this text there among the `SEARCHED` newest; upper and lower case of ASCII letters are
        the same, of others where the database knows them. With `forked_from` only forks of this
        thread."""

    async def quarantined(
        self, organization_id: OrganizationId, limit: int, *, teams: Teams = None
    ) -> tuple[Thread, ...]:
        """Threads in quarantine, the newest quarantine first; of those that teams own, only those
        of `teams`. Reads no other threads."""

    async def append(self, organization_id: OrganizationId, message: Message) -> None:
        """Add a message at the end. Raises NOT_FOUND without the thread, CONFLICT `thread_busy`
        (with `run_id`) while a run of the thread is unfinished, `thread_quarantined`."""

    async def messages(
        self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest
    ) -> Page[Message]:
        """Messages in order, oldest first, without superseded ones and without the provider's
        items."""

    async def release(
        self, organization_id: OrganizationId, thread_id: ThreadId, audit: AuditEvent
    ) -> ReleasedThread | None:
        """End the thread's quarantine and store the audit entry. None if the thread does not exist.
        Raises CONFLICT `thread_not_quarantined`."""

    async def delete(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        """Remove the thread with its messages, runs, events and calls, and store the audit entry.
        Audit entries of its runs stay. False, and no entry, if it does not exist.

        With `as_runner`, only a thread without runs of other keys is removed.

        Raises: CONFLICT `thread_busy` while a run is unfinished, `thread_quarantined`, FORBIDDEN
        `thread_not_yours`.
        """


class SourceCopier(Protocol):
    """Copies files of a thread to another one."""

    async def execute(self, principal: Principal, origin: ThreadId, fork: ThreadId, *, until: datetime) -> None:
        """Those that were there at `until`. Raises ServiceError `fork_sources_too_large`."""
