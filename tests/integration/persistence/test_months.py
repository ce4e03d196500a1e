"""Audit entries and gateway calls on PostgreSQL lie in monthly partitions, which come before their
month and go when they are empty."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import delete, text

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.errors import ErrorKind, ServiceError
from domain.ids import AuditEventId, ToolCallId, derived_id
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.retention.months import AHEAD, SqlMonthlyTables
from infrastructure.persistence.tables import audit_event
from tests.builders import ORG, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import opened
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.gateway_builders import a_gateway_call, a_gateway_session
from tests.integration.persistence.monthly import (
    an_id,
    divmod_month,
    moment_in,
    months_before,
    months_of,
    name_of,
    partition_of,
    with_ended_months,
)

pytestmark = pytest.mark.requirement("K5")

OLDEST, NEXT, LAST = months_before(3)


@pytest.fixture
def url(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """A database with three ended months."""
    with with_ended_months(postgres_databases, 3) as url:
        yield url


@asynccontextmanager
async def opened_with_stores(url: str) -> AsyncIterator[tuple[Database, Stores]]:
    database = PostgresDatabase(url, connections=3)
    async with opened(database, an_organization(ORG)) as stores:
        yield database, stores


def entry_of(moment: datetime) -> AuditEventId:
    return AuditEventId(an_id("aud", moment))


def months_ahead(count: int) -> list[str]:
    now = datetime.now(UTC)
    return [name_of(divmod_month(now.year * 12 + now.month - 1 + number)) for number in range(count + 1)]


async def test_months_are_added_before_they_begin_and_once(url: str) -> None:
    async with opened_with_stores(url) as (database, _):
        for _ in range(2):
            await SqlMonthlyTables(database=database).add_months()
    ended = [name_of(month) for month in (OLDEST, NEXT, LAST)]
    for table in ("audit_event", "gateway_call"):
        assert months_of(url, table) == ["gone", *ended, *months_ahead(AHEAD), "later"]


async def test_a_row_lies_in_the_month_of_its_id_and_one_without_a_moment_with_the_rest(url: str) -> None:
    named = AuditEventId(derived_id("aud", "a repeated step"))
    entries = {entry_of(moment_in(month)): name_of(month) for month in (OLDEST, LAST)} | {named: "rest"}
    async with opened_with_stores(url) as (_, stores):
        for entry in entries:
            await stores.audit.record(replace(an_audit_event(), id=entry))
            await stores.audit.record(replace(an_audit_event(), id=entry, actor="again"))  # changes nothing
        await _session(stores)
        call = replace(a_gateway_call(), id=ToolCallId(an_id("call", moment_in(NEXT))))
        await stores.gateway_ledger.intend(call)
        assert await stores.gateway_ledger.call_of(ORG, call.session_id, call.id) == (call, None)
    assert {entry: partition_of(url, "audit_event", entry) for entry in entries} == entries
    assert partition_of(url, "gateway_call", call.id) == name_of(NEXT)


async def test_rows_of_a_month_that_was_not_added_in_time_move_there_later(url: str) -> None:
    month = months_ahead(AHEAD)[-1]
    year, number = (int(part) for part in month.split("_"))
    late = entry_of(moment_in((year, number)))
    async with opened_with_stores(url) as (database, stores):
        await stores.audit.record(replace(an_audit_event(), id=late))
        # On the last day of a month an upgrade makes the month after the next one.
        assert partition_of(url, "audit_event", late) in ("later", month)
        await SqlMonthlyTables(database=database).add_months()
        assert partition_of(url, "audit_event", late) == month


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM audit_event WHERE id = $1",
        "UPDATE gateway_call SET state = 'settled' WHERE session_id = 'gws_1' AND id = $1",
    ],
)
def test_a_row_is_found_and_changed_by_its_id_without_a_look_at_other_months(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE one(text) AS {statement}".encode())
        plan = "\n".join(str(line) for (line,) in connection.execute("EXPLAIN (COSTS OFF) EXECUTE one('aud_1')"))
    assert "Subplans Removed" in plan, plan
    assert plan.count("Index Scan") == 1, plan


async def test_a_page_of_the_trail_reads_each_month_by_its_index(url: str) -> None:
    page = "EXPLAIN (COSTS OFF) SELECT * FROM audit_event WHERE organization_id = 'org_1' ORDER BY at DESC, id DESC LIMIT 20"
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        connection.execute("SET enable_seqscan = off")  # of empty tables the planner takes any
        connection.execute("SET enable_bitmapscan = off")
        plan = "\n".join(str(line) for (line,) in connection.execute(page.encode()))
    assert "Merge Append" in plan, plan
    assert "Seq Scan" not in plan, plan


async def test_empty_months_go_once_they_have_ended_the_oldest_first_and_rows_of_them_find_a_place(url: str) -> None:
    kept = entry_of(moment_in(NEXT))
    late = entry_of(moment_in(OLDEST))
    async with opened_with_stores(url) as (database, stores):
        await stores.audit.record(replace(an_audit_event(), id=kept))
        months = SqlMonthlyTables(database=database)
        assert await months.remove_empty_months() == 1 + 3 * 3, "one of the audit trail, and all of the others"
        assert await months.remove_empty_months() == 0
        await stores.audit.record(replace(an_audit_event(2), id=late))
        found = await stores.audit.page(ORG, AuditFilter(), PageRequest(limit=10))
        assert {event.id for event in found.items} == {kept, late}
        await database.write(
            lambda connection: connection.execute(delete(audit_event).where(audit_event.c.id == kept)), scope=SYSTEM
        )
        assert await months.remove_empty_months() == 2
    assert partition_of(url, "audit_event", late) == "gone"
    assert months_of(url, "audit_event") == ["gone", *months_of(url, "gateway_call")[1:]]
    assert name_of(LAST) not in months_of(url, "audit_event")


async def test_a_month_that_has_not_ended_or_is_not_as_it_was_seen_is_not_removed(url: str) -> None:
    async with opened_with_stores(url) as (database, stores):
        await stores.audit.record(replace(an_audit_event(), id=entry_of(moment_in(OLDEST))))
        before = months_of(url, "audit_event")
        # With an entry too few, none to remove yet, and one to keep that is not there.
        refusals = [(month, 0, "{}") for month in (name_of(OLDEST), name_of(NEXT), months_ahead(0)[0], "later")]
        for month, expected, kept in [*refusals, (name_of(OLDEST), 1, "{aud_none}")]:
            with pytest.raises(ServiceError) as refused:
                await database.write(
                    lambda connection, month=month, expected=expected, kept=kept: connection.execute(  # type: ignore[misc]
                        text("SELECT remove_month('audit_event', :month, :expected, CAST(:kept AS text[]))"),
                        {"month": f"audit_event_{month}", "expected": expected, "kept": kept},
                    ),
                    scope=SYSTEM,
                )
            assert refused.value.kind is ErrorKind.UNAVAILABLE
        assert months_of(url, "audit_event") == before


async def test_deleting_a_session_deletes_its_calls_in_all_months(url: str) -> None:
    async with opened_with_stores(url) as (database, stores):
        await _session(stores)
        for month in (OLDEST, LAST):
            await stores.gateway_ledger.intend(
                replace(a_gateway_call(), id=ToolCallId(an_id("call", moment_in(month))))
            )
        await database.write(lambda connection: connection.execute(text("DELETE FROM gateway_session")), scope=SYSTEM)
        count = text("SELECT count(*) FROM gateway_call")
        assert await database.read(lambda connection: connection.execute(count).scalar_one(), scope=SYSTEM) == 0


def test_no_role_reads_a_month_beside_the_row_security_of_its_table(url: str) -> None:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, unnest(ARRAY[%s, %s, 'public']) role"
            " WHERE c.relkind = 'r' AND NOT c.relforcerowsecurity AND has_table_privilege(role, c.oid, 'SELECT, INSERT, UPDATE, DELETE')",
            (REQUEST_ROLE, SYSTEM_ROLE),
        ).fetchall()
    assert found == []


async def test_on_sqlite_there_are_no_months(sqlite: Database) -> None:
    months = SqlMonthlyTables(database=sqlite)
    await months.add_months()
    assert await months.remove_empty_months() == 0


async def _session(stores: Stores) -> None:
    await stores.agents.add(an_agent(), an_audit_event(90))
    await stores.gateway_sessions.add(a_gateway_session(), an_audit_event(91), thread=a_thread())
