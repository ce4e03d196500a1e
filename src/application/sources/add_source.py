"""AddSource: add a file to a thread, for its runs to search and compute with."""

from collections.abc import AsyncIterable
from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.sources.store_source import StoreSource, StoreSourceCommand
from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from application.threads.seen_thread import require_seen
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import SourceId, ThreadId
from domain.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSourceCommand:
    """`content` is read once, as it arrives."""

    principal: Principal
    thread_id: ThreadId
    name: str
    content: AsyncIterable[bytes]


class AddSource:
    """Rules:
    - Requires `runner`.
    - Audited as `source.added` with name, size and digest.

    Raises: ServiceError role_insufficient, and those of `StoreSource`.
    """

    def __init__(self, *, store: StoreSource, threads: ThreadStore, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._store = store
        self._clock = clock
        self._ids = ids

    async def execute(self, command: AddSourceCommand) -> Source:
        principal = command.principal
        principal.require(Permission.RUNS_START)
        await require_seen(self._threads, principal, command.thread_id)

        def audit(source: Source) -> AuditEvent:
            return audit_entry(
                principal,
                AuditAction.SOURCE_ADDED,
                source.id,
                ids=self._ids,
                at=self._clock.now(),
                details={
                    "thread_id": source.thread_id,
                    "name": source.name,
                    "size": source.size,
                    "sha256": source.digest,
                },
            )

        return await self._store.execute(
            StoreSourceCommand(
                source_id=SourceId(self._ids.new("src")),
                organization_id=principal.organization_id,
                thread_id=command.thread_id,
                name=command.name,
                content=command.content,
                audit=audit,
            )
        )
