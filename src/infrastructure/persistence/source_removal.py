"""Taking sources away in steps: to take a long text out of the index takes as long as putting it in, and others write too.

What is being taken away counts as unfinished: nobody sees it, and what a crash leaves of it is forgotten like any upload that
was broken off.
"""

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update

from domain.ids import OrganizationId, SourceId, ThreadId
from infrastructure.persistence.database import Database
from infrastructure.persistence.tables import source, source_chunk

PIECES_IN_A_STEP = 100

_in_thread = (source.c.organization_id == bindparam("of_organization"), source.c.thread_id == bindparam("of_thread"))
_hide_in_thread = update(source).where(*_in_thread).values(finished=False)
_has_sources = select(source.c.id).where(*_in_thread).limit(1)
_this = (source.c.organization_id == bindparam("of_organization"), source.c.id == bindparam("named"))


def hide_sources(connection: Connection, organization_id: OrganizationId, thread_id: ThreadId) -> bool:
    """Let nobody see the sources of a thread any more; False if it has none."""
    wanted = {"of_organization": organization_id, "of_thread": thread_id}
    if connection.execute(_has_sources, wanted).first() is None:
        return False
    connection.execute(_hide_in_thread, wanted)
    return True


async def remove_pieces_of_thread(database: Database, organization_id: OrganizationId, thread_id: ThreadId) -> None:
    """Remove the text of the thread's hidden sources."""
    await _remove(database, _in_thread, {"of_organization": organization_id, "of_thread": thread_id})


async def remove_pieces(database: Database, organization_id: OrganizationId, source_id: SourceId) -> None:
    """Remove the text of a hidden source."""
    await _remove(database, _this, {"of_organization": organization_id, "named": source_id})


async def _remove(database: Database, which: tuple[ColumnElement[bool], ...], wanted: dict[str, str]) -> None:
    hidden = select(source.c.id).where(*which, source.c.finished.is_(False))
    some = select(source_chunk.c.id).where(source_chunk.c.source_id.in_(hidden)).limit(PIECES_IN_A_STEP)
    statement = delete(source_chunk).where(source_chunk.c.id.in_(some))

    def unit(connection: Connection) -> int:
        return connection.execute(statement, wanted).rowcount

    while await database.write(unit) == PIECES_IN_A_STEP:
        pass
