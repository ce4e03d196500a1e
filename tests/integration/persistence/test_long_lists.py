"""Long lists of tools on SQLite: short transactions, and a list that is there whole whatever
happens between them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from sqlalchemy import Connection, func, select

from domain.audit.event import AuditAction
from domain.mcp.catalog import McpCatalog
from infrastructure.persistence.engine.database import SYSTEM, Scope, Unit
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.mcp.catalog_store import SqlMcpCatalogStore
from infrastructure.persistence.mcp.definition_rows import PIECE, DefinitionPieces
from infrastructure.persistence.tables import mcp_tool_definition
from tests.builders import ORG, SERVER, a_catalog, a_definition, a_server, an_audit_event
from tests.contract.sql_legs import sql_stores

pytestmark = pytest.mark.requirement("S3")
T = TypeVar("T")


class LostPower(Exception):
    """The process ends here."""


async def power_fails() -> None:
    raise LostPower


class Interrupted:
    """A database to which something happens before its transaction with this number: the process
    ends."""

    def __init__(
        self, database: SqliteDatabase, *, before: int, by: Callable[[], Awaitable[None]] = power_fails
    ) -> None:
        self._database = database
        self._left = before
        self._by = by
        self.most_rows = self.all_rows = 0

    async def start(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    def obstacle(self) -> str | None:
        return None

    async def write(self, unit: Unit[T], *, scope: Scope, after_commit: Callable[[T], None] | None = None) -> T:
        if self._left == 0:
            await self._by()
        self._left -= 1

        def counted(connection: Connection) -> T:
            before = connection.connection.driver_connection.total_changes  # type: ignore[union-attr]  # of sqlite3
            done = unit(connection)
            changes = connection.connection.driver_connection.total_changes - before  # type: ignore[union-attr]  # the same
            self.most_rows = max(self.most_rows, changes)
            self.all_rows += changes
            return done

        return await self._database.write(counted, scope=scope, after_commit=after_commit)

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        return await self._database.read(unit, scope=scope)


def a_long_catalog(description: str, *, revision: int = 0, pieces: int = 3) -> McpCatalog:
    tools = tuple(a_definition(f"tool_{number:04}", description=description) for number in range(pieces * PIECE))
    return replace(a_catalog(tools=tools), revision=revision)


async def registered(sqlite: SqliteDatabase) -> SqlMcpCatalogStore:
    """The catalogs, with a server that was never listed."""
    await sql_stores(sqlite).servers.add(a_server(), an_audit_event(action=AuditAction.MCP_SERVER_CREATED))
    return SqlMcpCatalogStore(database=sqlite)


async def rows(sqlite: SqliteDatabase) -> int:
    counted = select(func.count()).select_from(mcp_tool_definition)
    return await sqlite.read(lambda connection: connection.execute(counted).scalar_one(), scope=SYSTEM)


async def test_no_transaction_changes_more_than_a_piece(sqlite: SqliteDatabase) -> None:
    await registered(sqlite)
    watched = Interrupted(sqlite, before=1000)
    for revision, description in enumerate(("One.", "Two.", "Three.")):
        assert await SqlMcpCatalogStore(database=watched).save(ORG, a_long_catalog(description, revision=revision))
    assert PIECE <= watched.most_rows <= PIECE + 5
    assert await rows(sqlite) == 3 * PIECE


@pytest.mark.parametrize("before", range(9))
async def test_a_process_that_ends_between_pieces_leaves_the_old_list_or_the_new_one(
    sqlite: SqliteDatabase, before: int
) -> None:
    catalogs = await registered(sqlite)
    old, new = a_long_catalog("Old."), a_long_catalog("New.", revision=1)
    assert await catalogs.save(ORG, old)
    with pytest.raises(LostPower):
        await SqlMcpCatalogStore(database=Interrupted(sqlite, before=before)).save(ORG, new)
    found = await catalogs.load(ORG, SERVER)
    assert found is not None
    assert found == (new if found.revision == 2 else old)

    newest = a_long_catalog("Newest.", revision=found.revision)
    assert await catalogs.save(ORG, newest)
    assert await catalogs.load(ORG, SERVER) == newest
    assert await rows(sqlite) == 3 * PIECE


async def test_a_first_list_that_was_cut_off_is_no_list(sqlite: SqliteDatabase) -> None:
    catalogs = await registered(sqlite)
    with pytest.raises(LostPower):
        await SqlMcpCatalogStore(database=Interrupted(sqlite, before=2)).save(ORG, a_long_catalog("First."))
    assert await catalogs.load(ORG, SERVER) is None
    assert await catalogs.save(ORG, a_catalog())
    assert await catalogs.load(ORG, SERVER) == a_catalog()
    assert await rows(sqlite) == len(a_catalog().tools)


async def test_of_two_long_lists_at_once_one_is_stored_whole(sqlite: SqliteDatabase) -> None:
    catalogs = await registered(sqlite)
    lists = [a_long_catalog(f"List {number}.") for number in range(4)]
    saved = await asyncio.gather(*(catalogs.save(ORG, each) for each in lists))
    assert saved.count(True) == 1
    assert await catalogs.load(ORG, SERVER) == lists[saved.index(True)]
    assert await rows(sqlite) == 3 * PIECE


@pytest.mark.parametrize("pieces", [0, 1, 2])
async def test_a_list_that_was_overtaken_is_not_written_further(sqlite: SqliteDatabase, pieces: int) -> None:
    catalogs = await registered(sqlite)
    new = a_long_catalog("New.")

    async def overtake() -> None:
        assert await catalogs.save(ORG, new)

    overtaken = Interrupted(sqlite, before=pieces, by=overtake)
    assert not await SqlMcpCatalogStore(database=overtaken).save(ORG, a_long_catalog("Late."))
    assert overtaken.all_rows == pieces * PIECE
    assert await catalogs.load(ORG, SERVER) == new
    assert await rows(sqlite) == 3 * PIECE


async def test_rows_that_another_process_removed_meanwhile_are_noticed(sqlite: SqliteDatabase) -> None:
    catalogs = await registered(sqlite)
    old = a_long_catalog("Old.")
    assert await catalogs.save(ORG, old)
    cleaner = DefinitionPieces(sqlite, ORG, SERVER)
    interrupted = Interrupted(sqlite, before=2, by=cleaner.remove_unlisted)
    assert not await SqlMcpCatalogStore(database=interrupted).save(ORG, a_long_catalog("New.", revision=1))
    assert await catalogs.load(ORG, SERVER) == old


async def test_a_server_whose_deletion_was_cut_off_has_an_empty_list_and_approves_nothing(
    sqlite: SqliteDatabase,
) -> None:
    catalogs = await registered(sqlite)
    assert await catalogs.save(ORG, a_long_catalog("Old."))
    pieces = Interrupted(sqlite, before=2)
    with pytest.raises(LostPower):
        await sql_stores(pieces).servers.delete(ORG, SERVER, an_audit_event(action=AuditAction.MCP_SERVER_DELETED))
    found = await catalogs.load(ORG, SERVER)
    assert found is not None
    assert (found.tools, found.revision) == ((), 2)


async def test_the_rows_of_a_deleted_server_are_gone(sqlite: SqliteDatabase) -> None:
    catalogs = await registered(sqlite)
    assert await catalogs.save(ORG, a_long_catalog("Old."))
    watched = Interrupted(sqlite, before=1000)
    audit = an_audit_event(action=AuditAction.MCP_SERVER_DELETED)
    assert await sql_stores(watched).servers.delete(ORG, SERVER, audit)
    assert await catalogs.load(ORG, SERVER) is None
    assert await rows(sqlite) == 0
    assert watched.most_rows <= PIECE
