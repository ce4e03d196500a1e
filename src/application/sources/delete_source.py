"""DeleteSource: remove a file from its thread."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.sources.ports import SourceStore
from application.sources.queries import seen_source
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSourceCommand:
    principal: Principal
    source_id: SourceId


class DeleteSource:
    """Rules:
    - Requires `runner`; `operator` if another key has run agents on the thread.
    - Works also during a run of the thread.
    - Audited as `source.deleted`.

    Raises: ServiceError role_insufficient, source_not_found, thread_not_yours.
    """

    def __init__(self, *, sources: SourceStore, clock: Clock, ids: IdSource) -> None:
        self._sources = sources
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteSourceCommand) -> None:
        principal = command.principal
        principal.require(Permission.RUNS_START)
        audit = audit_entry(
            principal, AuditAction.SOURCE_DELETED, command.source_id, ids=self._ids, at=self._clock.now()
        )
        await seen_source(self._sources, principal, command.source_id)
        as_runner = None if principal.may(Permission.RUNS_CONTROL) else principal.key_id
        if not await self._sources.delete(principal.organization_id, command.source_id, audit, as_runner=as_runner):
            raise not_found("source", command.source_id)
