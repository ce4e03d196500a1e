"""The upgrade to monthly partitions, and the removal of a month, beside processes that write and
read the same tables."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from alembic import command
from sqlalchemy import Connection, text

from application.audit.ports import AuditFilter, ExportPart
from application.audit.seal_audit import SealAudit
from application.system.pages import Page, PageRequest
from domain.ids import AuditEventId
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.schema.revision import is_current, plain_engine
from infrastructure.persistence.schema.upgrade import configuration, upgrade
from infrastructure.runtime.system import SystemClock
from tests.builders import ORG, an_audit_event, an_organization
from tests.contract.sql_legs import opened
from tests.databases import PostgresDatabases
from tests.doubles.audit_chain import GivenSealKeys
from tests.integration.persistence.monthly import an_id, moment_in, months_before, name_of, with_ended_months

pytestmark = pytest.mark.requirement("K5", "K7")

KEYS = GivenSealKeys(b"k" * 32)
_IS_WAITED_FOR = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = %s::regclass AND NOT granted AND mode = 'AccessExclusiveLock')"


@pytest.fixture
def before(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """A database of the revision before partitions."""
    with postgres_databases.empty() as url:
        engine = plain_engine(url)
        with engine.begin() as connection:
            command.upgrade(configuration(connection), "0074")
        engine.dispose()
        yield url


def test_a_call_that_is_being_recorded_is_audited_while_the_upgrade_waits_for_it(before: str) -> None:
    with (
        psycopg.connect(before) as writer,
        psycopg.connect(before, autocommit=True) as seen,
        ThreadPoolExecutor(1) as pool,
    ):
        writer.execute("LOCK TABLE gateway_call IN ROW EXCLUSIVE MODE")  # as its insert does
        upgrading = pool.submit(upgrade, before)
        _until_waited_for(seen, "gateway_call")
        writer.execute("LOCK TABLE audit_event IN ROW EXCLUSIVE MODE NOWAIT")
        writer.commit()
        assert upgrading.result(150) is True
    assert is_current(before)


def test_a_reader_of_a_run_reads_its_events_and_calls_while_the_upgrade_waits_for_it(before: str) -> None:
    with (
        psycopg.connect(before) as reader,
        psycopg.connect(before, autocommit=True) as seen,
        ThreadPoolExecutor(1) as pool,
    ):
        reader.execute("SELECT * FROM run")
        upgrading = pool.submit(upgrade, before)
        _until_waited_for(seen, "run")
        for table in ("run_event", "tool_call"):
            reader.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE NOWAIT".encode())
        reader.commit()
        assert upgrading.result(150) is True
    assert is_current(before)


@pytest.mark.parametrize(
    "change",
    [
        "SELECT add_months('run_event', 3)",
        "SELECT remove_month('run_event', (SELECT min(month) FROM months_of('run_event') WHERE month ~ '[0-9]$'), 0, '{}')",
    ],
)
def test_a_reader_of_a_run_reads_its_events_while_a_change_of_months_waits_for_it(
    postgres_databases: PostgresDatabases, change: str
) -> None:
    def changed() -> None:
        is_waiting = True
        while is_waiting:  # a second at a time
            with suppress(psycopg.errors.LockNotAvailable), psycopg.connect(url) as connection:
                connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
                connection.execute(change.encode())
                is_waiting = False

    with (
        with_ended_months(postgres_databases, 1) as url,
        psycopg.connect(url) as reader,
        psycopg.connect(url, autocommit=True) as seen,
        ThreadPoolExecutor(1) as pool,
    ):
        reader.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        reader.execute("SELECT * FROM run")
        changing = pool.submit(changed)
        _until_waited_for(seen, "run")
        reader.execute("SET LOCAL lock_timeout = '1ms'")
        reader.execute("SELECT * FROM run_event")
        reader.commit()
        changing.result(150)


def test_an_upgrade_that_was_ended_for_a_deadlock_is_tried_again(before: str) -> None:
    with psycopg.connect(before) as connection:
        connection.execute("CREATE SEQUENCE tries")
        connection.execute(
            "CREATE FUNCTION deadlock_once() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('public.tries') = 1 THEN RAISE EXCEPTION 'deadlock' USING ERRCODE = 'deadlock_detected'; END IF; END $$"
        )
        connection.execute("CREATE EVENT TRIGGER first ON ddl_command_start EXECUTE FUNCTION deadlock_once()")
    assert upgrade(before) is True
    assert is_current(before)


def _until_waited_for(seen: "psycopg.Connection[tuple[object, ...]]", table: str) -> None:
    until = time.monotonic() + 60
    while seen.execute(_IS_WAITED_FOR, (table,)).fetchone() != (True,):
        assert time.monotonic() < until


READS = {
    "links": lambda stores: stores.audit_chain.links(ORG, 0, 10),
    "export": lambda stores: stores.audit_chain.export(ORG, AuditFilter(), 0, 10),
    "page": lambda stores: stores.audit.page(ORG, AuditFilter(), PageRequest(limit=10)),
}


@pytest.mark.parametrize("read", list(READS))
async def test_an_entry_that_a_removal_moves_while_a_reader_waits_for_it_is_not_missing(
    postgres_databases: PostgresDatabases, read: str
) -> None:
    oldest, *_ = months_before(2)
    kept = AuditEventId(an_id("aud", moment_in(oldest)))
    with with_ended_months(postgres_databases, 2) as url, psycopg.connect(url) as remover:
        database = PostgresDatabase(url, connections=3, lock_wait_s=60)
        async with opened(database, an_organization(ORG)) as stores:
            await stores.audit.record(replace(an_audit_event(), id=kept))
            await SealAudit(seals=stores.audit_seals, keys=KEYS, clock=SystemClock()).sweep()
            remover.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
            remover.execute("SELECT remove_month('audit_event', %s, 1, %s)", (f"audit_event_{name_of(oldest)}", [kept]))
            reading = asyncio.ensure_future(READS[read](stores))
            async with asyncio.timeout(60):
                while not await database.read(_is_waited_for, scope=SYSTEM):
                    assert not reading.done()
            remover.commit()
            found = await reading
    if isinstance(found, Page):
        assert [event.id for event in found.items] == [kept]
    else:
        links = found.links if isinstance(found, ExportPart) else found
        assert [stored.entry[0] for stored in links if stored.entry is not None] == [kept]


def _is_waited_for(connection: Connection) -> bool:
    waiting = text(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = CAST('audit_event' AS regclass) AND NOT granted"
        " AND mode = 'AccessShareLock')"
    )
    return bool(connection.execute(waiting).scalar_one())
