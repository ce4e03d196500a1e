"""What is asked of runs every few seconds reads the unfinished ones only, however many have ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from infrastructure.persistence.database import SYSTEM
from infrastructure.persistence.sqlite import SqliteDatabase
from tests.builders import ORG, RUN, a_message, a_thread, after, an_agent, an_audit_event
from tests.contract.run_steps import claim, finish_step, run_number, start
from tests.contract.sql_legs import sql_stores

Statements = dict[str, Any]


@contextmanager
def statements_about_unfinished_runs() -> Iterator[Statements]:
    """Each statement that asks for unfinished runs, with parameters it was executed with."""
    seen: Statements = {}

    def note(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
        if "run.lease_expires_at <=" in statement or "run.status IN (" in statement:
            seen[statement] = parameters

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.requirement("E4")
async def test_neither_the_sweep_nor_the_queue_of_a_thread_scans_the_runs(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    with statements_about_unfinished_runs() as seen:
        await stores.threads.append(ORG, a_message())
        await start(stores, run_number(1))
        await start(stores, run_number(2))
        await claim(stores, RUN)
        await stores.leases.recoverable(at=after(60), limit=10)
        again = await claim(stores, RUN)
        await stores.journal.commit(again.lease, finish_step(again.run))

    def plan(connection: Connection, statement: str) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", seen[statement])]

    assert len([statement for statement in seen if "lease_expires_at" in statement]) == 1
    assert len([statement for statement in seen if "row_number()" in statement]) == 1
    assert len([statement for statement in seen if "run.thread_id = ?" in statement]) == 3
    for statement in seen:
        steps = await sqlite.read(lambda connection, asked=statement: plan(connection, asked), scope=SYSTEM)  # type: ignore[misc]
        of_runs = [step for step in steps if " run " in step]
        assert of_runs, statement
        assert all(step.startswith("SEARCH") and "INDEX ix_run_unfinished (status=?" in step for step in of_runs), steps


@pytest.mark.requirement("E4")
async def test_a_sweep_that_finds_nothing_lapsed_writes_nothing(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    await start(stores, run_number(1))
    before = sqlite.commits
    assert await stores.leases.recoverable(at=after(60), limit=10) == (RUN,)
    assert sqlite.commits == before
