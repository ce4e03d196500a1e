"""ForkThread: begin a thread with the messages of another one, up to a message that is said
differently."""

from contextlib import suppress
from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from application.threads.ports import ForkedThread, SourceCopier, ThreadStore
from domain.audit.event import AuditAction
from domain.errors import ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import MessageId, ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import ForkPoint, Thread, thread_quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkThreadCommand:
    """`before` is the first message that is not copied; without it all are. `metadata` is that of
    the thread by default. Without `with_sources` the fork has no files."""

    principal: Principal
    thread_id: ThreadId
    before: MessageId | None = None
    metadata: JsonObject | None = None
    with_sources: bool = True


class ForkThread:
    """Rules:
    - Requires `runner`. The thread stays as it is; the fork has its team.
    - Only a message of a user is left out with what follows it, so that each tool call has its
      result.
    - A thread in quarantine is not forked: its messages would leave it.
    - While a run is unfinished, the thread is forked only before a message.
    - Files of the thread are copied that were there when it was forked, or with `before` when that
      message was said. The fork and the thread keep theirs when the other one is changed or
      deleted. Files attached to messages are part of them.
    - Files of a thread that is in quarantine or belongs to another team by then are not copied.
    - Without all of its files there is no fork.

    Raises: ServiceError role_insufficient, thread_not_found, message_not_found, fork_place_invalid,
    thread_busy, thread_quarantined, fork_sources_too_large.
    """

    def __init__(self, *, threads: ThreadStore, sources: SourceCopier, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._sources = sources
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ForkThreadCommand) -> ForkedThread:
        principal = command.principal
        principal.require(Permission.RUNS_START)
        organization_id = principal.organization_id
        forked = principal.found(
            await self._threads.get(organization_id, command.thread_id), "thread", command.thread_id
        )
        new = Thread(
            id=ThreadId(self._ids.new("thr")),
            organization_id=organization_id,
            metadata=forked.metadata if command.metadata is None else command.metadata,
            created_at=self._clock.now(),
            forked_from=ForkPoint(thread_id=forked.id, before=command.before),
            team=forked.team,
        )
        done = ForkedThread(thread=new, replaced=await self._threads.fork(new))
        if command.with_sources:
            await self._copy_sources(principal, forked.id, done)
        return done

    async def _copy_sources(self, principal: Principal, origin: ThreadId, fork: ForkedThread) -> None:
        """Copy them, or delete the fork."""
        until = fork.thread.created_at if fork.replaced is None else fork.replaced.created_at
        try:
            now = await self._threads.get(principal.organization_id, origin)
            if now is None or now.team != fork.thread.team:
                raise not_found("thread", origin)
            if now.quarantine is not None:
                raise thread_quarantined(origin, now.quarantine.run_id)
            await self._sources.execute(principal, origin, fork.thread.id, until=until)
        except BaseException:
            audit = audit_entry(
                principal, AuditAction.THREAD_DELETED, fork.thread.id, ids=self._ids, at=self._clock.now()
            )
            with suppress(ServiceError):  # such a fork may stay
                await self._threads.delete(principal.organization_id, fork.thread.id, audit)
            raise
