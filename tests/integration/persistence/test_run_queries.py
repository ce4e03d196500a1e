"""What is asked of runs every few seconds reads the unfinished ones only, however many have
ended."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Select, event, select
from sqlalchemy.dialects.sqlite import dialect

from application.runs.ports import RunFilter, RunOrder
from application.system.pages import PageRequest
from domain.runs.run import RunStatus
from infrastructure.persistence.columns.paging import encode_cursor
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.runs.admission import active
from infrastructure.persistence.runs.filters import conditions
from infrastructure.persistence.runs.orders import sort_of
from infrastructure.persistence.runs.queue_lines import queued_lines
from infrastructure.persistence.runs.rows import select_run
from infrastructure.persistence.runs.walks import End, Walk
from infrastructure.persistence.tables.runs import run
from infrastructure.persistence.usage.counted_for import counting_for
from tests.builders import KEY, ORG, RUN, START, THREAD, a_message, a_thread, after, an_agent, an_audit_event
from tests.contract.run_steps import claim, finish_step, run_number, start
from tests.contract.sql_legs import sql_stores
from tests.people_builders import USER

Statements = dict[str, Any]


class _Noting(sqlite3.Cursor):
    """Notes each statement that asks for unfinished runs, whichever way it came to the driver."""

    seen: Statements

    def execute(self, sql: str, parameters: Any = (), /) -> "_Noting":
        if "run.lease_expires_at <=" in sql or "run.status IN (" in sql:
            self.seen[sql] = parameters
        super().execute(sql, parameters)
        return self


@pytest.fixture
def statements() -> Iterator[Statements]:
    """Each statement that asks for unfinished runs, with parameters it was executed with; for
    databases opened after."""
    seen: Statements = {}

    class NotingHere(_Noting):
        pass

    NotingHere.seen = seen

    class Connected(sqlite3.Connection):
        def cursor(self, factory: Any = NotingHere) -> Any:
            return super().cursor(factory)

    def connect_so(_: object, __: object, ___: object, options: dict[str, Any]) -> None:
        options["factory"] = Connected

    event.listen(Engine, "do_connect", connect_so)
    try:
        yield seen
    finally:
        event.remove(Engine, "do_connect", connect_so)


@pytest.mark.requirement("E4")
async def test_neither_the_sweep_nor_the_queue_of_a_thread_scans_the_runs(
    statements: Statements, sqlite: SqliteDatabase
) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    await stores.threads.append(ORG, a_message())
    await start(stores, run_number(1))
    await start(stores, run_number(2))
    await claim(stores, RUN)
    await stores.leases.recoverable(at=after(60), limit=10)
    again = await claim(stores, RUN)
    await stores.journal.commit(again.lease, finish_step(again.run))
    seen = dict(statements)

    def plan(connection: Connection, statement: str) -> list[str]:
        asked = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(seen[statement]))
        return [row[3] for row in asked]

    assert len([statement for statement in seen if "run.lease_expires_at <=" in statement]) == 1
    assert len([statement for statement in seen if "row_number()" in statement]) == 1
    assert len([statement for statement in seen if "run.thread_id = ?" in statement]) == 3
    for statement in seen:
        steps = await sqlite.read(lambda connection, asked=statement: plan(connection, asked), scope=SYSTEM)  # type: ignore[misc]
        of_runs = [step for step in steps if " run " in step]
        assert of_runs, statement
        assert all(step.startswith("SEARCH") for step in of_runs), steps
        assert all("INDEX ix_run_unfinished (status=?" in step or "(id=?)" in step for step in of_runs), steps


@pytest.mark.requirement("E4")
async def test_a_sweep_that_finds_nothing_lapsed_writes_nothing(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    await start(stores, run_number(1))
    before = sqlite.commits
    assert await stores.leases.recoverable(at=after(60), limit=10) == (RUN,)
    assert sqlite.commits == before


@pytest.mark.requirement("X2", "X3", "X4")
async def test_runs_of_a_conversation_are_found_by_its_digest_alone(sqlite: SqliteDatabase) -> None:
    """The digest of a new conversation finds none: the organization's runs must not be read for
    that."""
    named = conditions(ORG, RunFilter(history_key="0" * 64))
    newest = select_run.where(*named).order_by(run.c.created_at.desc(), run.c.id.desc()).limit(2)
    statement = newest.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert "INDEX ix_run_request_history_key (organization_id=? AND history_key=?)" in steps[0]
    assert "(id=?)" in steps[1]


@pytest.mark.requirement("K4")
async def test_failed_runs_are_found_in_an_index_of_runs_that_did_not_complete(sqlite: SqliteDatabase) -> None:
    """Most runs complete: their organization's must not be read for a page of those that failed."""
    failed = select_run.where(*conditions(ORG, RunFilter(status=RunStatus.FAILED)))
    statement = (
        failed.order_by(run.c.created_at.desc(), run.c.id.desc())
        .limit(20)
        .compile(dialect=dialect(), compile_kwargs={"literal_binds": True})
    )

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert "USING INDEX ix_run_not_completed (organization_id=? AND status=?)" in steps[0]
    assert not any("B-TREE" in step for step in steps)


_SORTED = (run.c.created_at.desc(), run.c.id.desc())
_BY_ERROR = "ix_run_error", "(organization_id=? AND error_code=?"
_BY_STARTER = "ix_run_organization_id_requested_by_created_at_id", "(organization_id=? AND requested_by=?"
_INDEXED = [
    (RunFilter(error="model_auth"), *_BY_ERROR),
    (RunFilter(error="model_auth", status=RunStatus.FAILED), *_BY_ERROR),
    (RunFilter(error="model_auth", started_by=KEY), *_BY_ERROR),
    (RunFilter(started_by=KEY), *_BY_STARTER),
    (RunFilter(started_by=KEY, thread_id=THREAD), "ix_run_thread_id_created_at_id", "(thread_id=?"),
    (RunFilter(started_by=KEY, status=RunStatus.REQUIRES_ACTION), "ix_run_unfinished", "(status=?"),
]


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(("wanted", "index", "by"), _INDEXED)
async def test_runs_with_an_error_or_of_a_starter_are_found_by_an_index(
    sqlite: SqliteDatabase, wanted: RunFilter, index: str, by: str
) -> None:
    """However rare they are, the organization's other runs must not be read for a page of them."""
    listed = select(run.c.id).where(*conditions(ORG, wanted)).order_by(*_SORTED).limit(51)
    statement = listed.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert f"INDEX {index} {by}" in steps[0], steps
    assert index == "ix_run_unfinished" or not any("B-TREE" in step for step in steps), steps


_OF_MODEL = Walk(
    organization_id=ORG,
    wanted=RunFilter(model="p:m", since=START, until=after(60)),
    request=PageRequest(cursor=encode_cursor(1, "run_1")),
    order=RunOrder.NEWEST,
)


@pytest.mark.requirement("U6")
async def test_a_page_of_runs_of_a_model_reads_a_bounded_part_of_an_index(sqlite: SqliteDatabase) -> None:
    """Requests have no order by time, so that a page is what the next runs have; their end is read
    from the index alone."""
    end = End(at=START, sort=sort_of(RunOrder.NEWEST))
    page = select_run.where(*conditions(ORG, _OF_MODEL.wanted), end.bounds).order_by(*_SORTED).limit(51)

    def plan(connection: Connection, statement: Select[Any]) -> list[str]:
        compiled = statement.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")]

    index = "INDEX ix_run_organization_id_created_at_id (organization_id=? AND created_at>? AND created_at<?)"
    [walked] = await sqlite.read(lambda connection: plan(connection, _OF_MODEL.last), scope=SYSTEM)
    assert f"COVERING {index}" in walked
    found = await sqlite.read(lambda connection: plan(connection, page), scope=SYSTEM)
    assert index in found[0], found
    assert "(run_id=?)" in found[1], found


@pytest.mark.requirement("K8")
async def test_queued_runs_of_all_lines_are_found_in_their_index(sqlite: SqliteDatabase) -> None:
    """Each page of the queue that is open asks for them every few seconds."""
    statement = queued_lines.where(run.c.organization_id == ORG).compile(
        dialect=dialect(), compile_kwargs={"literal_binds": True}
    )

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert "USING INDEX ix_run_queued (organization_id=?)" in steps[0]


_ACTIVE_OF_USER = active.params(organization_id=ORG, freed="", **counting_for(USER, with_keys=True))


@pytest.mark.requirement("P2")
async def test_active_runs_of_a_user_are_counted_among_the_unfinished_ones(sqlite: SqliteDatabase) -> None:
    """Each start of a user with a bound asks for them, under the organization's lock."""
    statement = _ACTIVE_OF_USER.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert "SEARCH run USING INDEX ix_run_unfinished (status=?" in steps[0], steps
