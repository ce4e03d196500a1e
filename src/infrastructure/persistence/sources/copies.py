"""Copies of a source's bytes and text that never leave the database: some in a transaction, so that
a large file does not block others."""

from sqlalchemy import Connection, Table, bindparam, insert, select

from domain.sources.source import Source
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.sources.intake import require_draft
from infrastructure.persistence.tables import source, source_chunk, source_part
from infrastructure.persistence.threads.source_removal import PARTS_IN_A_STEP, PIECES_IN_A_STEP

_CHANGED = {
    "source_id": bindparam("to_source", type_=source_part.c.source_id.type),
    "thread_id": bindparam("to_thread", type_=source_chunk.c.thread_id.type),
}
# The text of a source is removed only once it is hidden, and a replaced one has other bytes.
_same = select(source.c.id).where(
    source.c.organization_id == bindparam("of_organization"),
    source.c.id == bindparam("from_source"),
    source.c.digest == bindparam("of_digest"),
    source.c.finished.is_(True),
)


class SqlSourceCopies:
    """The `SourceCopies` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def fill(self, draft: Source, original: Source) -> bool:
        await self._copy(source_part, draft, original, PARTS_IN_A_STEP)
        await self._copy(source_chunk, draft, original, PIECES_IN_A_STEP)
        wanted = {
            "of_organization": original.organization_id,
            "from_source": original.id,
            "of_digest": original.digest,
        }
        return await self._database.read(
            lambda connection: connection.execute(_same, wanted).first() is not None, scope=original.organization_id
        )

    async def _copy(self, table: Table, draft: Source, original: Source, step: int) -> None:
        """Copy the rows of the table, `step` in a transaction."""
        copied = [column for column in table.columns if column.name != "id"]
        rows = select(*[_CHANGED.get(column.name, column).label(column.name) for column in copied]).where(
            table.c.organization_id == bindparam("of_organization"),
            table.c.source_id == bindparam("from_source"),
            table.c.position >= bindparam("first"),
            table.c.position < bindparam("end"),
        )
        statement = insert(table).from_select([column.name for column in copied], rows)
        statement = statement.execution_options(preserve_rowcount=True)
        wanted = {
            "of_organization": original.organization_id,
            "from_source": original.id,
            "to_source": draft.id,
            "to_thread": draft.thread_id,
        }
        first, is_last = 0, False

        def unit(connection: Connection) -> bool:
            require_draft(connection, draft)
            places = {"first": first, "end": first + step}
            return connection.execute(statement, {**wanted, **places}).rowcount < step

        while not is_last:
            is_last = await self._database.write(unit, scope=draft.organization_id)
            first += step
