"""What PostgreSQL reads of an organization's runs where there are many, as its planner knows."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import ClauseElement, Connection, select

from application.runs.ports import RunFilter, RunOrder
from application.system.pages import PageRequest
from domain.runs.run import RunStatus
from infrastructure.persistence.columns.paging import encode_cursor
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.runs.admission import active
from infrastructure.persistence.runs.filters import conditions
from infrastructure.persistence.runs.walks import Walk
from infrastructure.persistence.tables.runs import run
from infrastructure.persistence.usage.counted_for import counting_for
from tests.builders import KEY, ORG, START, a_thread, after, an_agent, an_audit_event, an_organization
from tests.contract.run_steps import run_number, start
from tests.contract.sql_legs import opened
from tests.databases import PostgresDatabases
from tests.people_builders import USER

# One of five failed, with one of sixty codes; one of two hundred is the key's.
_RUNS = """
    INSERT INTO run SELECT made.* FROM run, generate_series(1, 10000) AS number, jsonb_populate_record(run,
        jsonb_build_object('id', 'run_' || number, 'created_at', run.created_at + 1000000::bigint * number)
        || jsonb_build_object('requested_by', CASE number % 200 WHEN 1 THEN run.requested_by ELSE 'usr_' || number % 50 END)
        || CASE number % 5 WHEN 0
            THEN jsonb_build_object('status', 'failed', 'error_code', 'code_' || number / 5 % 60)
            ELSE '{"status": "completed"}' END) AS made
"""


@pytest.fixture
async def database(postgres_databases: PostgresDatabases) -> AsyncIterator[PostgresDatabase]:
    """A database with many runs, all but one of them ended."""
    with postgres_databases.apart() as url:
        database = PostgresDatabase(url, connections=2)
        async with opened(database, an_organization(ORG)) as stores:
            await stores.agents.add(an_agent(), an_audit_event())
            await stores.threads.add(a_thread())
            await start(stores, run_number(1))
            with psycopg.connect(postgres_databases.owner_url(url)) as connection:
                connection.execute(_RUNS)
                connection.execute("ANALYZE run")
            yield database


async def plan(database: PostgresDatabase, statement: ClauseElement) -> str:
    """How the planner would have it read."""

    def explained(connection: Connection) -> str:
        compiled = statement.compile(connection, compile_kwargs={"literal_binds": True})
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN (COSTS OFF) {compiled}".replace("%", "%%")).scalars())

    return await database.read(explained, scope=SYSTEM)


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (RunFilter(error="code_7"), "ix_run_error"),
        (RunFilter(error="code_7", status=RunStatus.FAILED), "ix_run_error"),
        (RunFilter(error="code_7", started_by=KEY), "ix_run_error"),
        (RunFilter(started_by=KEY), "ix_run_organization_id_requested_by_created_at_id"),
    ],
)
async def test_runs_with_an_error_or_of_a_starter_are_found_by_an_index(
    database: PostgresDatabase, wanted: RunFilter, index: str
) -> None:
    newest = select(run.c.id).where(*conditions(ORG, wanted)).order_by(run.c.created_at.desc(), run.c.id.desc())
    found = await plan(database, newest.limit(51))
    assert f"using {index} on run" in found, found
    assert "Sort" not in found, found


@pytest.mark.requirement("U6")
async def test_the_end_of_a_walk_is_read_from_an_index(database: PostgresDatabase) -> None:
    walk = Walk(
        organization_id=ORG,
        wanted=RunFilter(model="p:m", since=START, until=after(60)),
        request=PageRequest(cursor=encode_cursor(1, "run_1")),
        order=RunOrder.NEWEST,
    )
    found = await plan(database, walk.last)
    assert "using ix_run_organization_id_created_at_id on run" in found, found
    assert "Sort" not in found, found


@pytest.mark.requirement("P2")
async def test_active_runs_of_a_user_are_counted_among_the_unfinished_ones(database: PostgresDatabase) -> None:
    counted = active.params(organization_id=ORG, freed="", **counting_for(USER, with_keys=True))
    found = await plan(database, counted)
    assert "ix_run_unfinished on run" in found, found
    assert "Seq Scan on run" not in found, found
