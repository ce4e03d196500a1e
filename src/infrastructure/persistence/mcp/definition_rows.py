"""Rows of `mcp_tool_definition`. On SQLite, which has one writer, those of a long list are stored
and removed in pieces: they wait beside the rows of the present list, at other positions, until the
state of the server names the first one."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Text, and_, bindparam, delete, func, select, update

from domain.ids import McpServerId, OrganizationId
from infrastructure.persistence.engine.database import Database, Unit
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.mcp.rows import LIST_RANGE, first_position_of, moved
from infrastructure.persistence.tables import mcp_server, mcp_server_state, mcp_tool_definition

T = TypeVar("T")

PIECE = 250
"""Rows of a transaction: they take about a millisecond."""
_PAUSE_S = 0.005
"""Between transactions, so that the writer is there for others most of the time."""
_PLACES = 2**31

_table = mcp_tool_definition.c
_description = select(mcp_server_state.c.description).where(mcp_server_state.c.server_id == bindparam("server_id"))
_is_state = and_(
    mcp_server_state.c.organization_id == bindparam("of_organization"),
    mcp_server_state.c.server_id == bindparam("of_server"),
)
_state = select(mcp_server_state).where(_is_state)
_move = update(mcp_server_state).where(_is_state)
_revision = (
    select(func.coalesce(mcp_server_state.c.revision, 0))
    .select_from(mcp_server.outerjoin(mcp_server_state, mcp_server_state.c.server_id == mcp_server.c.id))
    .where(mcp_server.c.id == bindparam("server_id"))
)
_of_server = _table.server_id == bindparam("server_id")
_insert = mcp_tool_definition.insert().values(
    definition=bindparam("definition_json", type_=Text),
    approved_definition=bindparam("approved_json", type_=Text),
    rejection=bindparam("rejection_json", type_=Text),
)
_insert_on_sqlite = Prepared(_insert.inline(), columns=[column.name for column in mcp_tool_definition.columns])
_count = (
    select(func.count())
    .select_from(mcp_tool_definition)
    .where(_of_server, _table.position >= bindparam("first"), _table.position < bindparam("end"))
)
_drop_all = delete(mcp_tool_definition).where(_of_server)
_drop_before, _drop_after = (
    delete(mcp_tool_definition).where(
        _of_server,
        _table.position.in_(
            select(_table.position).where(_of_server, outside).order_by(_table.position).limit(PIECE).scalar_subquery()
        ),
    )
    for outside in (_table.position < bindparam("first"), _table.position >= bindparam("end"))
)


def first_position(connection: Connection, server_id: McpServerId) -> int:
    """Where the present list begins."""
    return first_position_of(connection.execute(_description, {"server_id": server_id}).scalar_one_or_none())


def insert_definitions(connection: Connection, rows: list[dict[str, object]]) -> None:
    """On SQLite without SQLAlchemy's work for each row, which takes as long as SQLite itself."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        _insert_on_sqlite.run(connection, *rows)
    else:
        connection.execute(_insert, rows)


def drop_definitions(connection: Connection, server_id: McpServerId) -> None:
    """All of a server."""
    connection.execute(_drop_all, {"server_id": server_id})


class DefinitionPieces:
    """The rows of a server in pieces. A new list begins at `first`. A process that is killed
    between pieces leaves rows that are in no list; they are removed with the next list."""

    def __init__(self, database: Database, organization_id: OrganizationId, server_id: McpServerId) -> None:
        self._database = database
        self._organization_id = organization_id
        self._server_id = server_id
        # Random, so that two lists under way do not share positions.
        self.first = (1 + secrets.randbelow(_PLACES)) * LIST_RANGE

    async def are_needed(self, count: int) -> bool:
        """Whether a list of so many rows, or the one in its place, is too long for one transaction
        of SQLite."""

        def unit(connection: Connection) -> bool:
            if connection.dialect.name != "sqlite":
                return False
            return count > PIECE or first_position(connection, self._server_id) > 0

        return await self._database.read(unit, scope=self._organization_id)

    async def store(self, rows: AsyncIterator[dict[str, object]], *, revision: int) -> None:
        """Store rows beside those of the present list, as long as that has this revision and the
        server exists."""
        store = partial(_store, server_id=self._server_id, revision=revision)
        piece: list[dict[str, object]] = []
        async for row in rows:
            piece.append(row)
            if len(piece) == PIECE:
                if not await self._in_a_transaction(partial(store, rows=piece)):
                    return
                piece = []
        await self._in_a_transaction(partial(store, rows=piece))

    def are_stored(self, connection: Connection, count: int) -> bool:
        """Whether all rows are there: another process, which has replaced the list meanwhile,
        removes those of no list."""
        return connection.execute(_count, self._wanted(self.first)).scalar_one() == count

    async def empty(self) -> None:
        """Replace the list, if there is one, by one without rows: of a server that is to be
        deleted."""

        def unit(connection: Connection) -> None:
            wanted = {"of_organization": self._organization_id, "of_server": self._server_id}
            state = connection.execute(_state, wanted).first()
            if state is not None:
                description = moved(state.description, self.first)
                connection.execute(_move, {**wanted, "description": description, "revision": state.revision + 1})

        await self._in_a_transaction(unit)
        await self.remove_unlisted()

    async def remove_unlisted(self) -> None:
        """Remove what is not in the present list."""

        def unit(connection: Connection) -> int:
            wanted = self._wanted(first_position(connection, self._server_id))
            return connection.execute(_drop_before, wanted).rowcount + connection.execute(_drop_after, wanted).rowcount

        while await self._in_a_transaction(unit):
            continue

    def _wanted(self, first: int) -> dict[str, object]:
        return {"server_id": self._server_id, "first": first, "end": first + LIST_RANGE}

    async def _in_a_transaction(self, unit: Unit[T]) -> T:
        done = await self._database.write(unit, scope=self._organization_id)
        await asyncio.sleep(_PAUSE_S)
        return done


def _store(connection: Connection, *, server_id: McpServerId, revision: int, rows: list[dict[str, object]]) -> bool:
    """Whether the list is still the one that these rows are to replace."""
    if connection.execute(_revision, {"server_id": server_id}).scalar_one_or_none() != revision:
        return False
    insert_definitions(connection, rows)
    return True
