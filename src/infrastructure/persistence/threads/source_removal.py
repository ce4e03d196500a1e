"""Removes sources in steps: removing a long text from the index takes as long as adding it, and
must not block writers.

A source being removed counts as unfinished: it is invisible, and its rest is removed after a
crash like an interrupted upload.
"""

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update

from domain.ids import OrganizationId, SourceId, ThreadId
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import source, source_chunk, source_part

PIECES_IN_A_STEP = 100
PARTS_IN_A_STEP = 4
"""A few MiB: deleted rows stay in memory until the commit."""

_in_thread = (source.c.organization_id == bindparam("of_organization"), source.c.thread_id == bindparam("of_thread"))
_hide_in_thread = update(source).where(*_in_thread).values(finished=False)
_has_sources = select(source.c.id).where(*_in_thread).limit(1)
_remove_part = delete(source_part).where(
    source_part.c.source_id == bindparam("of_source"), source_part.c.position == bindparam("at_position")
)
_this = (source.c.organization_id == bindparam("of_organization"), source.c.id == bindparam("named"))


def hide_sources(connection: Connection, organization_id: OrganizationId, thread_id: ThreadId) -> bool:
    """Hide the sources of a thread. False if it has none."""
    wanted = {"of_organization": organization_id, "of_thread": thread_id}
    if connection.execute(_has_sources, wanted).first() is None:
        return False
    connection.execute(_hide_in_thread, wanted)
    return True


async def remove_pieces_of_thread(database: Database, organization_id: OrganizationId, thread_id: ThreadId) -> None:
    """Remove the text of the thread's hidden sources."""
    await _remove(database, organization_id, _in_thread, {"of_thread": thread_id})


async def remove_pieces(database: Database, organization_id: OrganizationId, source_id: SourceId) -> None:
    """Remove the text of a hidden source."""
    await _remove(database, organization_id, _this, {"named": source_id})


async def _remove(
    database: Database, organization_id: OrganizationId, which: tuple[ColumnElement[bool], ...], named: dict[str, str]
) -> None:
    wanted = {"of_organization": organization_id, **named}
    hidden = select(source.c.id).where(*which, source.c.finished.is_(False))
    pieces = select(source_chunk.c.id).where(source_chunk.c.source_id.in_(hidden)).limit(PIECES_IN_A_STEP)
    parts = (
        select(source_part.c.source_id, source_part.c.position)
        .where(source_part.c.source_id.in_(hidden))
        .limit(PARTS_IN_A_STEP)
    )

    def without_pieces(connection: Connection) -> bool:
        statement = delete(source_chunk).where(source_chunk.c.id.in_(pieces))
        return connection.execute(statement, wanted).rowcount < PIECES_IN_A_STEP

    def without_parts(connection: Connection) -> bool:
        found = connection.execute(parts, wanted).all()
        for source_id, position in found:
            connection.execute(_remove_part, {"of_source": source_id, "at_position": position})
        return len(found) < PARTS_IN_A_STEP

    for step in (without_pieces, without_parts):
        while not await database.write(step, scope=organization_id):
            pass
