"""Uploads of sources into SQL: each part and each few chunks in a separate transaction, so that a
large file does not block others."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, select, update

from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found
from domain.sources.source import MAX_SOURCES, IndexedChunk, Source
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.prepared import prepared_insert
from infrastructure.persistence.sources.rows import chunk_rows, source_row
from infrastructure.persistence.tables import source, source_chunk, source_part
from infrastructure.persistence.threads.queue import lock_thread
from infrastructure.persistence.threads.source_removal import remove_pieces

_forget_stale = delete(source).where(
    source.c.organization_id == bindparam("of_organization"),
    source.c.finished.is_(False),
    source.c.created_at < bindparam("stale_before"),
)
_this = (source.c.organization_id == bindparam("of_organization"), source.c.id == bindparam("named"))
_draft = (*_this, source.c.finished.is_(False))
_replace = delete(source).where(*_this)
_count = select(func.count()).select_from(source).where(source.c.thread_id == bindparam("of_thread"))
# A reference of an inserted row locks its parent: the parent is removed only before or after.
_lock = select(source.c.id).where(*_draft).with_for_update(key_share=True)
_discard = delete(source).where(*_draft)
_insert = prepared_insert(source)
_insert_part = prepared_insert(source_part)


class SqlSourceIntake:
    """The `SourceIntake` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def begin(self, draft: Source, *, stale_before: datetime) -> None:

        def unit(connection: Connection) -> None:
            if not lock_thread(connection, draft.organization_id, draft.thread_id):
                raise not_found("thread", draft.thread_id)
            connection.execute(_forget_stale, {"of_organization": draft.organization_id, "stale_before": stale_before})
            connection.execute(_replace, _named(draft))
            if connection.execute(_count, {"of_thread": draft.thread_id}).scalar_one() >= MAX_SOURCES:
                raise conflict("sources_full", f"A thread may have up to {MAX_SOURCES} sources.")
            _insert.run(connection, source_row(draft, finished=False))

        await self._database.write(unit, scope=draft.organization_id)

    async def put_part(self, draft: Source, position: int, data: bytes) -> None:
        row = {
            "source_id": draft.id,
            "position": position,
            "organization_id": draft.organization_id,
            "data": data,
        }

        def unit(connection: Connection) -> None:
            require_draft(connection, draft)
            _insert_part.run(connection, row)

        await self._database.write(unit, scope=draft.organization_id)

    async def put_chunks(self, draft: Source, first: int, chunks: Sequence[IndexedChunk]) -> None:
        rows = chunk_rows(draft, first, chunks)

        def unit(connection: Connection) -> None:
            require_draft(connection, draft)
            connection.execute(source_chunk.insert(), rows)

        await self._database.write(unit, scope=draft.organization_id)

    async def finish(self, done: Source, audit: AuditEvent) -> None:

        def unit(connection: Connection) -> None:
            changed = connection.execute(
                update(source).where(*_draft).values(source_row(done, finished=True)), _named(done)
            )
            if changed.rowcount != 1:
                raise not_found("source", done.id)
            record(connection, audit)

        await self._database.write(unit, scope=done.organization_id)

    async def discard(self, draft: Source) -> None:
        await remove_pieces(self._database, draft.organization_id, draft.id)
        await self._database.write(
            lambda connection: connection.execute(_discard, _named(draft)).close(), scope=draft.organization_id
        )


def _named(draft: Source) -> dict[str, str]:
    return {"of_organization": draft.organization_id, "named": draft.id}


def require_draft(connection: Connection, draft: Source) -> None:
    """Raises NOT_FOUND if the draft is gone."""
    if connection.execute(_lock, _named(draft)).first() is None:
        raise not_found("source", draft.id)
