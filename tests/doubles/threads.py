"""Threads and their messages in memory."""

from dataclasses import replace

from application.system.pages import Page, PageRequest
from application.threads.ports import Conversation, ReleasedThread
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.ids import ApiKeyId, OrganizationId, ThreadId
from domain.runs.starting import thread_busy
from domain.teams import Teams, sees
from domain.threads.message import Message, Role, TextContent
from domain.threads.thread import Thread, not_quarantined, require_fork_before
from tests.doubles.owners import require_group, seen
from tests.doubles.paging import by_time, newest_first, oldest_first
from tests.doubles.state import InMemoryState, StoredThread, refuse_if_quarantined, without_items


def _opening(stored: StoredThread) -> str | None:
    first = next((message for message in stored.transcript() if message.role is Role.USER), None)
    texts = () if first is None else (part.text for part in first.content if isinstance(part, TextContent))
    return next(iter(texts), None)


def _origin_of(thread: Thread) -> ThreadId | None:
    return None if thread.forked_from is None else thread.forked_from.thread_id


class InMemoryThreadStore:
    """The `ThreadStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, thread: Thread) -> None:
        """Store a new thread."""
        require_group(self._state, thread.organization_id, thread.team)
        self._state.threads[thread.id] = StoredThread(thread=thread)

    async def get(self, organization_id: OrganizationId, thread_id: ThreadId) -> Thread | None:
        """The thread, or None."""
        stored = self._state.thread_of(organization_id, thread_id)
        return None if stored is None else stored.thread

    async def fork(self, new: Thread) -> Message | None:
        """Store a new thread with copies of messages."""
        point = new.forked_from
        assert point is not None
        origin = self._state.thread_of(new.organization_id, point.thread_id)
        if origin is None:
            raise not_found("thread", point.thread_id)
        refuse_if_quarantined(origin.thread)
        transcript = origin.transcript()
        if point.before is None:
            self._refuse_if_busy(point.thread_id)
            copied, replaced = transcript, None
        else:
            replaced = next((message for message in transcript if message.id == point.before), None)
            if replaced is None:
                raise not_found("message", point.before)
            require_fork_before(replaced)
            copied = transcript[: transcript.index(replaced)]
        copies = [replace(message, thread_id=new.id, run_id=None) for message in copied]
        self._state.threads[new.id] = StoredThread(thread=new, messages=copies)
        return replaced

    async def conversations(
        self,
        organization_id: OrganizationId,
        search: str,
        request: PageRequest,
        *,
        forked_from: ThreadId | None = None,
    ) -> Page[Conversation]:
        """Threads by the text of their first message, newest first."""
        found = [
            Conversation(thread=stored.thread, opening=_opening(stored))
            for stored in self._state.threads.values()
            if stored.thread.organization_id == organization_id
            and (forked_from is None or _origin_of(stored.thread) == forked_from)
        ]
        wanted = [each for each in found if search.casefold() in (each.opening or "").casefold()]
        wanted = seen(self._state, request.teams, wanted, lambda each: each.thread.id)
        return newest_first(wanted, lambda each: by_time(each.thread.created_at, each.thread.id), request)

    async def quarantined(
        self, organization_id: OrganizationId, limit: int, *, teams: Teams = None
    ) -> tuple[Thread, ...]:
        """Threads in quarantine, the newest quarantine first."""
        found = [
            (each.thread.quarantine.at, each.thread)
            for each in self._state.threads.values()
            if each.thread.organization_id == organization_id
            and each.thread.quarantine is not None
            and sees(teams, each.thread.team)
        ]
        return tuple(thread for _, thread in sorted(found, key=lambda entry: entry[0], reverse=True))[:limit]

    async def append(self, organization_id: OrganizationId, message: Message) -> None:
        """Add a message at the end."""
        stored = self._state.thread_of(organization_id, message.thread_id)
        if stored is None:
            raise not_found("thread", message.thread_id)
        refuse_if_quarantined(stored.thread)
        self._refuse_if_busy(message.thread_id)
        stored.messages.append(message)

    async def messages(
        self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest
    ) -> Page[Message]:
        """Messages in order, oldest first, without superseded ones."""
        stored = self._state.thread_of(organization_id, thread_id)
        if stored is None:
            return Page(items=())
        places = {message.id: f"{place:012d}" for place, message in enumerate(stored.messages)}
        return oldest_first(
            without_items(stored.transcript()), lambda message: (places[message.id], message.id), request
        )

    async def release(
        self, organization_id: OrganizationId, thread_id: ThreadId, audit: AuditEvent
    ) -> ReleasedThread | None:
        """End the thread's quarantine."""
        stored = self._state.thread_of(organization_id, thread_id)
        if stored is None:
            return None
        if stored.thread.quarantine is None:
            raise not_quarantined(thread_id)
        stored.thread = replace(stored.thread, quarantine=None)
        self._state.record(audit)
        return ReleasedThread(thread=stored.thread, promoted=self._state.next_run(thread_id))

    async def delete(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        """Remove the thread with everything in it except its audit."""
        state = self._state
        if state.thread_of(organization_id, thread_id) is None:
            return False
        state.refuse_if_run_by_others(thread_id, as_runner)
        refuse_if_quarantined(state.threads[thread_id].thread)
        self._refuse_if_busy(thread_id)
        del state.threads[thread_id]
        state.sources = {id_: kept for id_, kept in state.sources.items() if kept.source.thread_id != thread_id}
        state.runs = {id_: stored for id_, stored in state.runs.items() if stored.run.thread_id != thread_id}
        state.approvals = {id_: known for id_, known in state.approvals.items() if known.run_id in state.runs}
        state.used_keys = {key: used for key, used in state.used_keys.items() if used.run_id in state.runs}
        state.deliveries = {id_: new for id_, new in state.deliveries.items() if new.delivery.run_id in state.runs}
        state.record(audit)
        return True

    def _refuse_if_busy(self, thread_id: ThreadId) -> None:
        unfinished = self._state.unfinished(thread_id)
        if unfinished:
            raise thread_busy(unfinished[0].run.id, unfinished[0].run.status)
