"""What PostgreSQL itself keeps apart, whatever the statements say. Everything here runs as an
ordinary user."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable

from application.runs.ports import LeaseLost
from domain.audit.event import AuditAction
from domain.ids import OrganizationId
from domain.runs.run_events import turn_started
from infrastructure.persistence.engine.database import SYSTEM, Scope
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.tables import metadata
from tests.builders import ORG, OTHER_ORG, a_thread, after, an_agent, an_audit_event
from tests.contract.run_steps import start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.integration.persistence.rows import OF_NOBODY, Row, organization_column, row_in_every_table

REFUSED = "42501"
"""insufficient_privilege, which a violated policy is as well."""
OF_ORGANIZATIONS = sorted(set(metadata.tables) - OF_NOBODY)
OWN = row_in_every_table(ORG, 1)
THEIRS = row_in_every_table(OTHER_ORG, 2)


@pytest.fixture
def url(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """A migrated database, as the ordinary user."""
    with postgres_databases.fresh() as url:
        yield url


@pytest.fixture
async def two(url: str) -> AsyncIterator[PostgresDatabase]:
    """A database with a row in every table for ORG, and one for OTHER_ORG."""
    database = PostgresDatabase(url, connections=1)
    await database.start()
    await database.write(add_rows, scope=SYSTEM)
    yield database
    await database.stop()


@pytest.fixture
async def postgres_stores(postgres: PostgresDatabase) -> Stores:
    """All stores, with an agent and a thread."""
    stores = sql_stores(postgres)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    return stores


def add_rows(connection: Connection) -> None:
    for rows in (OWN, THEIRS):
        for name, row in rows.items():
            connection.execute(metadata.tables[name].insert(), row)


def is_row(table: Table, row: Row) -> ColumnElement[bool]:
    return and_(*(column == row[column.name] for column in table.primary_key.columns))


async def outcome_of(database: PostgresDatabase, statement: Executable, scope: Scope = ORG) -> int | str:
    """How many rows it found or touched, or the code it is refused with."""

    def unit(connection: Connection) -> int:
        result = connection.execute(statement)
        return len(result.all()) if result.returns_rows else result.rowcount

    try:
        return await database.write(unit, scope=scope)
    except Exception as error:
        cause = error.__cause__ if isinstance(error.__cause__, DBAPIError) else error
        state = getattr(getattr(cause, "orig", None), "sqlstate", None)
        if state is None:
            raise
        return str(state)


async def all_rows(database: PostgresDatabase) -> dict[str, list[tuple[object, ...]]]:
    """Everything, as the system sees it."""

    def unit(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
        return {
            name: sorted((tuple(row) for row in connection.execute(select(metadata.tables[name]))), key=repr)
            for name in OF_ORGANIZATIONS
        }

    return await database.read(unit, scope=SYSTEM)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("name", OF_ORGANIZATIONS)
async def test_of_no_table_another_organizations_rows_can_be_read_changed_removed_or_added(
    two: PostgresDatabase, name: str
) -> None:
    table = metadata.tables[name]
    whose, own, theirs = organization_column(table), is_row(table, OWN[name]), is_row(table, THEIRS[name])
    before = await all_rows(two)
    assert len(before[name]) == 2

    assert await outcome_of(two, select(table).where(theirs)) == 0
    assert await outcome_of(two, select(table).where(whose == OTHER_ORG)) == 0
    assert await outcome_of(two, select(table)) == 1
    assert await outcome_of(two, update(table).where(theirs).values({whose: whose})) in {0, REFUSED}
    assert await outcome_of(two, update(table).where(theirs).values({whose: ORG})) in {0, REFUSED}
    assert await outcome_of(two, delete(table).where(theirs)) in {0, REFUSED}
    assert await outcome_of(two, table.insert().values(THEIRS[name])) == REFUSED
    assert await outcome_of(two, update(table).where(own).values({whose: OTHER_ORG})) == REFUSED
    assert await all_rows(two) == before


@pytest.mark.requirement("C6")
async def test_deleting_everything_deletes_only_what_is_ones_own(two: PostgresDatabase) -> None:
    before = await all_rows(two)
    for table in reversed(metadata.sorted_tables):
        await outcome_of(two, delete(table))
    after_it = await all_rows(two)
    for name in OF_ORGANIZATIONS:
        assert [row for row in before[name] if OTHER_ORG in row] == [row for row in after_it[name] if OTHER_ORG in row]
    assert after_it["thread"] != before["thread"]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("scope", [OrganizationId(""), OrganizationId("org_nobody"), OrganizationId("' OR '1'='1")])
async def test_who_works_for_nobody_sees_nothing(two: PostgresDatabase, scope: OrganizationId) -> None:
    seen = {name: await outcome_of(two, select(metadata.tables[name]), scope) for name in OF_ORGANIZATIONS}
    assert set(seen.values()) == {0}


@pytest.mark.requirement("C6")
async def test_raw_sql_without_the_setting_sees_nothing(two: PostgresDatabase, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name in metadata.tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f'SELECT * FROM "{name}"'.encode())
        connection.execute(f"SET ROLE {REQUEST_ROLE}".encode())
        for name in OF_ORGANIZATIONS:
            assert connection.execute(f'SELECT * FROM "{name}"'.encode()).fetchall() == [], name


@pytest.mark.requirement("C6")
async def test_the_keys_of_the_audit_trail_are_no_organizations(two: PostgresDatabase) -> None:
    for name in OF_NOBODY:
        assert await outcome_of(two, select(metadata.tables[name])) == REFUSED
        assert await outcome_of(two, select(metadata.tables[name]), SYSTEM) == 0


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("name", ["audit_event", "audit_seal", "audit_head", "audit_forward"])
async def test_requests_can_neither_rewrite_nor_remove_what_their_trail_holds(two: PostgresDatabase, name: str) -> None:
    table = metadata.tables[name]
    assert await outcome_of(two, update(table).values({organization_column(table): ORG})) == REFUSED
    assert await outcome_of(two, delete(table)) == REFUSED


@pytest.mark.requirement("C6")
async def test_role_and_organization_end_with_the_unit(two: PostgresDatabase, url: str) -> None:
    asked = text("SELECT current_user::text, current_setting('dragoman.organization_id', true), pg_backend_pid()")

    def unit(connection: Connection) -> tuple[str, str, int]:
        user, organization_id, backend = connection.execute(asked).one()
        return user, organization_id, backend

    first = await two.write(unit, scope=ORG)
    with pytest.raises(ZeroDivisionError):
        await two.write(lambda connection: (unit(connection), 1 // 0), scope=OTHER_ORG)
    second = await two.read(unit, scope=SYSTEM)
    third = await two.read(unit, scope=OTHER_ORG)
    assert [first[:2], second[:2], third[:2]] == [(REQUEST_ROLE, ORG), (SYSTEM_ROLE, ""), (REQUEST_ROLE, OTHER_ORG)]
    assert first[2] == second[2] == third[2], "it has to be one connection for this to say anything"


@pytest.mark.requirement("C6")
async def test_a_lease_that_names_another_organization_reaches_nothing(postgres_stores: Stores) -> None:
    """The statements of a step name no organization: they go by the run's id and its epoch."""
    claimed = await start_and_claim(postgres_stores)
    forged = replace(claimed.lease, organization_id=OTHER_ORG)
    with pytest.raises(LeaseLost):
        await postgres_stores.journal.append(forged, (turn_started(1, at=after(5)),))
    assert await postgres_stores.journal.cancel_requested_by(forged) == "system"
    assert not await postgres_stores.leases.hand_back(forged, active_s=0, at=after(9))
    await postgres_stores.journal.append(claimed.lease, (turn_started(1, at=after(5)),))


def test_every_table_is_behind_the_wall(url: str) -> None:
    walls = text(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,"
        " (SELECT array_agg(p.policyname || ' ' || p.roles[1] || ' ' || p.cmd ORDER BY p.policyname)"
        "  FROM pg_policies p WHERE p.tablename = c.relname)"
        " FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
    )
    with psycopg.connect(url) as connection:
        found = {name: (forced, policies) for name, forced, policies in connection.execute(str(walls).encode())}
    system = f"system_work {SYSTEM_ROLE} ALL"
    for name in metadata.tables:
        policies = [system] if name in OF_NOBODY else [f"own_organization {REQUEST_ROLE} ALL", system]
        assert found[name] == (True, policies), f"let the migration that makes {name} protect it (row_security.py)"


def test_the_user_of_these_tests_is_an_ordinary_one(url: str) -> None:
    with psycopg.connect(url) as connection:
        special = connection.execute(
            "SELECT rolname FROM pg_roles WHERE (rolsuper OR rolbypassrls OR rolcreaterole OR rolinherit AND rolcanlogin)"
            " AND rolname = ANY(%s)",
            [["dragoman_request", "dragoman_system", connection.info.user]],
        ).fetchall()
        inherited = connection.execute(
            "SELECT pg_has_role(current_user, 'dragoman_system', 'USAGE')"
            " OR pg_has_role('dragoman_request', 'dragoman_system', 'MEMBER')"
        ).fetchone()
        owned = connection.execute(
            "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) IN"
            " (current_user, 'dragoman_request', 'dragoman_system')"
        ).fetchone()
    assert (special, inherited, owned) == ([], (False,), (0,))
