"""The contract of what processes report of MCP servers, in memory and over both databases."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

import pytest

from application.mcp.ports import McpServerStore, ServerState, ServerStatus
from application.mcp.server_reports import REPORT_EXPIRES, ServerReport, ServerReports
from domain.audit.event import AuditAction
from domain.ids import McpServerId
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.mcp.server_reports import SqlServerReports
from tests.builders import ORG, OTHER_ORG, SERVER, a_server, after, an_audit_event, an_organization, numbered
from tests.contract.sql_legs import opened
from tests.databases import PostgresDatabases, SqliteFiles
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.server_reports import InMemoryServerReports
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("E6")

NEVER_STORED = McpServerId(numbered("mcp", 9))


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A store with the server SERVER of ORG, over a clock that stands still."""

    reports: ServerReports
    servers: McpServerStore
    clock: FixedClock


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    clock = FixedClock()
    added = an_audit_event(action=AuditAction.MCP_SERVER_CREATED)
    if request.param == "memory":
        state = InMemoryState()
        servers = InMemoryMcpServerStore(state)
        await servers.add(a_server(), added)
        yield Harness(reports=InMemoryServerReports(state, clock=clock), servers=servers, clock=clock)
        return
    with ExitStack() as stack:
        if request.param == "sqlite":
            database: Database = SqliteDatabase(cast(SqliteFiles, request.getfixturevalue("sqlite_files")).fresh())
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            database = PostgresDatabase(stack.enter_context(databases.fresh()), connections=2)
        async with opened(database, an_organization(ORG), an_organization(OTHER_ORG)) as stores:
            await stores.servers.add(a_server(), added)
            yield Harness(reports=SqlServerReports(database=database, clock=clock), servers=stores.servers, clock=clock)


def a_report(process: str, state: ServerState = ServerState.CONNECTED, **changes: object) -> ServerReport:
    status = ServerStatus(
        state=state, since=after(5), last_error="It was lost.", protocol_version="2025-11-25", tool_count=3
    )
    values = {"organization_id": ORG, "server_id": SERVER, "server_version": 1, "status": status, **changes}
    return ServerReport(process=process, name=f"machine:{process}", **values)  # type: ignore[arg-type]


async def test_what_processes_report_is_read_by_process_and_replaced_by_what_they_report_next(harness: Harness) -> None:
    first, second = a_report("one"), a_report("two", ServerState.ERROR)
    await harness.reports.publish("two", (second,), ())
    await harness.reports.publish("one", (first,), ())
    assert await harness.reports.of(a_server()) == (first, second)
    bare = a_report("one", status=ServerStatus(state=ServerState.CONNECTING, since=after(9)))
    await harness.reports.publish("one", (bare,), ())
    assert await harness.reports.of(a_server()) == (bare, second)


async def test_what_a_process_has_nothing_to_say_of_is_gone_and_all_of_it_when_it_ends(harness: Harness) -> None:
    await harness.reports.publish("one", (a_report("one"),), ())
    await harness.reports.publish("two", (a_report("two"),), ())
    await harness.reports.publish("one", (), (SERVER,))
    assert await harness.reports.of(a_server()) == (a_report("two"),)
    await harness.reports.withdraw("two")
    assert await harness.reports.of(a_server()) == ()


async def test_reports_of_a_process_that_says_nothing_any_more_expire(harness: Harness) -> None:
    await harness.reports.publish("dead", (a_report("dead"),), ())
    await harness.reports.publish("alive", (a_report("alive"),), ())
    harness.clock.advance(REPORT_EXPIRES.total_seconds() - 1)
    await harness.reports.alive("alive")
    assert len(await harness.reports.of(a_server())) == 2
    harness.clock.advance(2)
    assert await harness.reports.of(a_server()) == (a_report("alive"),)
    await harness.reports.alive("alive")
    harness.clock.advance(-REPORT_EXPIRES.total_seconds())
    assert await harness.reports.of(a_server()) == (a_report("alive"),), "what expired is dropped"


async def test_reports_of_another_version_are_not_of_this_server(harness: Harness) -> None:
    await harness.reports.publish("one", (a_report("one", server_version=2),), ())
    assert await harness.reports.of(a_server()) == ()
    assert len(await harness.reports.of(a_server(version=2))) == 1


@pytest.mark.requirement("C6")
async def test_nothing_is_kept_of_a_server_that_is_not_stored_or_of_another_organization(harness: Harness) -> None:
    strays = (a_report("one", server_id=NEVER_STORED), a_report("one", organization_id=OTHER_ORG))
    await harness.reports.publish("one", strays, ())
    await harness.reports.publish("two", (a_report("two"),), ())
    assert await harness.reports.of(a_server()) == (a_report("two"),)
    assert await harness.reports.of(a_server(organization_id=OTHER_ORG)) == ()


async def test_a_deleted_server_takes_its_reports_along(harness: Harness) -> None:
    await harness.reports.publish("one", (a_report("one"),), ())
    await harness.servers.delete(ORG, SERVER, an_audit_event(9, action=AuditAction.MCP_SERVER_DELETED))
    assert await harness.reports.of(a_server()) == ()
