"""CopySources: copy the files of a thread to a fork of it."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.sources.ports import SourceCopies, SourceIntake, SourceStore
from application.sources.store_source import STALE_AFTER
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import SourceId, ThreadId
from domain.sources.source import Source

MAX_COPIED_BYTES = 256 * 1024 * 1024
"""In sum, for one fork."""


class CopySources:
    """The `SourceCopier` port of threads. Rules:
    - A copy has the name, the bytes, the text and the time of its original, another id and no run.
    - Files that were there at `until` are copied.
    - More than 256 MiB in sum are rejected before anything is copied.
    - A file that is deleted meanwhile is left out.
    - Each copy is audited as `source.added` with the id of its original.

    Raises: ServiceError fork_sources_too_large, thread_not_found.
    """

    def __init__(
        self, *, sources: SourceStore, intake: SourceIntake, copies: SourceCopies, clock: Clock, ids: IdSource
    ) -> None:
        self._sources = sources
        self._intake = intake
        self._copies = copies
        self._clock = clock
        self._ids = ids

    async def execute(self, principal: Principal, origin: ThreadId, fork: ThreadId, *, until: datetime) -> None:
        known = await self._sources.of_thread(principal.organization_id, origin)
        originals = [each for each in known if each.created_at <= until]
        if sum(each.size for each in originals) > MAX_COPIED_BYTES:
            raise _too_large()
        for original in reversed(originals):
            await self._copy(principal, original, fork)

    async def _copy(self, principal: Principal, original: Source, fork: ThreadId) -> None:
        # A draft of the original's time would count as abandoned.
        now = self._clock.now()
        draft = replace(original, id=SourceId(self._ids.new("src")), thread_id=fork, created_at=now, run_id=None)
        await self._intake.begin(draft, stale_before=now - STALE_AFTER)
        try:
            if await self._copies.fill(draft, original):
                copy = replace(draft, created_at=original.created_at)
                await self._intake.finish(copy, self._audit(principal, copy, original))
            else:
                await self._intake.discard(draft)
        except BaseException:
            with suppress(ServiceError):  # an abandoned draft is removed later
                await self._intake.discard(draft)
            raise

    def _audit(self, principal: Principal, copy: Source, original: Source) -> AuditEvent:
        return audit_entry(
            principal,
            AuditAction.SOURCE_ADDED,
            copy.id,
            ids=self._ids,
            at=self._clock.now(),
            details={
                "thread_id": copy.thread_id,
                "name": copy.name,
                "size": copy.size,
                "sha256": copy.digest,
                "copy_of": original.id,
            },
        )


def _too_large() -> ServiceError:
    megabytes = MAX_COPIED_BYTES // (1024 * 1024)
    detail = f"The sources of the thread have more than {megabytes} MiB. Fork it without them."
    return ServiceError("fork_sources_too_large", ErrorKind.TOO_LARGE, detail)
