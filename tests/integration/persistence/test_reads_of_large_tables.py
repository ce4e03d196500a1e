"""Lists on PostgreSQL read rows of their organization alone, however many others have."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

import psycopg
import pytest
from sqlalchemy import Connection, text

from application.audit.ports import AuditFilter
from application.runs.ports import RunFilter
from application.system.pages import PageRequest
from application.usage.ports import UsageFilter
from benchmarks.large import fill
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.database import Database, Scope, Unit
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from tests.builders import AGENT, ORG, RUN, THREAD, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.run_steps import claim, finish_step, reply_step, start
from tests.contract.sql_legs import opened, sql_stores
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases

T = TypeVar("T")
ORGANIZATIONS, THREADS = 200, 20_000
OWN = 3 * (THREADS // ORGANIZATIONS)
"""Of all runs of the organization: a page of runs asks for sizes first, and then looks up those
that it shows."""
MOST = {"runs that failed": 40}
"""All runs are completed; the planner looks at the ends of indexes."""
PAGE, ONE = PageRequest(limit=20), PageRequest(limit=1)

_READ = text("""
    SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) AS found FROM pg_stat_xact_user_tables
    WHERE seq_tup_read + coalesce(idx_tup_fetch, 0) > 0
""")

_LEFT_ALONE = """
    DO $$ DECLARE name regclass; BEGIN
        FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
            EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
        END LOOP;
    END $$
"""
"""The server analyzes no table by itself, which it would do within a minute."""


class CountedReads:
    """A database that counts the rows that its last read went through, by table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.start, self.stop, self.write, self.obstacle = (
            database.start,
            database.stop,
            database.write,
            database.obstacle,
        )
        self.rows: dict[str, int] = {}

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        def counted(connection: Connection) -> T:
            before = _read_by(connection)
            result = unit(connection)
            self.rows = {table: rows - before.get(table, 0) for table, rows in _read_by(connection).items()}
            return result

        return await self._database.read(counted, scope=scope)


def _read_by(connection: Connection) -> dict[str, int]:
    """Of this connection; statements of before may not be counted elsewhere yet."""
    return {row.relname: row.found for row in connection.execute(_READ) if not row.relname.startswith("pg_")}


@pytest.fixture(params=["analyzed", "never analyzed"])
async def large(request: pytest.FixtureRequest, postgres_databases: PostgresDatabases) -> AsyncIterator[CountedReads]:
    """A database with 20,000 runs of 200 organizations, one of which is ORG."""
    with postgres_databases.apart() as url:
        async with opened(PostgresDatabase(url, connections=2), an_organization(ORG)) as stores:
            await _one_run(stores)
        with psycopg.connect(postgres_databases.owner_url(url), autocommit=True) as connection:
            connection.execute(_LEFT_ALONE)
            fill(url, THREADS, organizations=ORGANIZATIONS, threads=THREADS)
            if request.param == "analyzed":
                connection.execute("ANALYZE")
        database = PostgresDatabase(url, connections=1)
        await database.start()
        yield CountedReads(database)
        await database.stop()


async def _one_run(stores: Stores) -> None:
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    await start(stores)
    claimed = await claim(stores, RUN)
    replied = reply_step(claimed.run)
    await stores.journal.commit(claimed.lease, replied)
    await stores.journal.commit(claimed.lease, finish_step(replied.run))


LISTS: Mapping[str, Callable[[Stores], Awaitable[object]]] = {
    "runs": lambda stores: stores.runs.page(ORG, RunFilter(), PAGE),
    "runs that failed": lambda stores: stores.runs.page(ORG, RunFilter(status=RunStatus.FAILED), PAGE),
    "runs of an agent": lambda stores: stores.runs.page(ORG, RunFilter(agent_id=AGENT), PAGE),
    "the newest run of a thread": lambda stores: stores.runs.page(ORG, RunFilter(thread_id=THREAD), ONE),
    "the newest run of a key": lambda stores: stores.runs.page(ORG, RunFilter(history_key="k"), ONE),
    "threads": lambda stores: stores.threads.conversations(ORG, "", PAGE),
    "audit": lambda stores: stores.audit.page(ORG, AuditFilter(), PAGE),
    "usage": lambda stores: stores.usage.page(ORG, UsageFilter(), PAGE),
}


@pytest.mark.timeout(600)  # filling the tables takes long on a busy machine
@pytest.mark.requirement("K4")
async def test_a_list_reads_rows_of_its_organization_alone(large: CountedReads) -> None:
    stores = sql_stores(large)
    for name, ask in LISTS.items():
        await ask(stores)
        assert all(rows <= MOST.get(name, OWN) for rows in large.rows.values()), (name, large.rows)
