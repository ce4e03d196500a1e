"""Searches of texts read the newest runs and threads only."""

from dataclasses import replace

import pytest

from application.runs.ports import RunFilter, RunOrder
from application.system.pages import PageRequest
from infrastructure.persistence.columns import paging
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import ORG, a_message, a_run_id, a_thread, a_thread_id, after, an_agent, an_audit_event
from tests.contract.run_steps import run_number, start
from tests.contract.sql_legs import sql_stores
from tests.contract.test_giving_to_groups import grouped

pytestmark = pytest.mark.requirement("U6")


async def test_a_search_reads_the_newest_runs_and_with_a_day_the_newest_before_it(
    sqlite: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "SEARCHED", 2)
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    runs = [run_number(number) for number in (1, 2, 3)]
    for each in runs:
        await start(stores, each)

    async def found(wanted: RunFilter) -> list[str]:
        return [run.id for run in (await stores.runs.page(ORG, wanted, PageRequest())).items]

    assert await found(RunFilter()) == [a_run_id(3), a_run_id(2), a_run_id(1)]
    assert await found(RunFilter(text="time is IT")) == [a_run_id(3), a_run_id(2)]
    assert await found(RunFilter(text="time is IT", until=runs[2].created_at)) == [a_run_id(2), a_run_id(1)]
    for wanted, counted in (
        (RunFilter(agent_id=runs[0].agent_id), 3),
        (RunFilter(model=runs[0].model), 2),
    ):
        assert await stores.runs.count(ORG, wanted, most=9) == counted
    before = RunFilter(model=runs[0].model, until=runs[1].created_at)
    assert await stores.runs.count(ORG, before, most=9) == 1


async def test_a_search_reads_the_newest_threads(sqlite: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SEARCHED", 2)
    stores = sql_stores(sqlite)
    for number in (1, 2, 3):
        await stores.threads.add(a_thread(a_thread_id(number), created_at=after(number)))
        await stores.threads.append(ORG, a_message(number, "Tides", thread_id=a_thread_id(number)))
    found = await stores.threads.conversations(ORG, "tides", PageRequest())
    assert [each.thread.id for each in found.items] == [a_thread_id(3), a_thread_id(2)]


@pytest.mark.requirement("P2")
async def test_a_search_reads_the_newest_threads_and_runs_that_are_seen(
    sqlite: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "SEARCHED", 1)
    stores = sql_stores(sqlite)
    await grouped(stores)
    await stores.agents.add(an_agent(), an_audit_event())
    for number, team in ((1, None), (2, "finance")):
        thread = replace(a_thread(a_thread_id(number), created_at=after(number)), team=team)
        await stores.threads.add(thread)
        await stores.threads.append(ORG, a_message(number, "Tides", thread_id=thread.id))
        await start(stores, replace(run_number(number), thread_id=thread.id, team=team))
    request = PageRequest(teams=frozenset({"sales"}))

    found = await stores.threads.conversations(ORG, "tides", request)
    assert [each.thread.id for each in found.items] == [a_thread_id(1)]
    wanted = RunFilter(text="time is IT")
    assert [run.id for run in (await stores.runs.page(ORG, wanted, request)).items] == [a_run_id(1)]
    assert [run.id for run in (await stores.runs.page(ORG, RunFilter(), request, RunOrder.LONGEST)).items] == [
        a_run_id(1)
    ]
    assert (await stores.runs.by_change(ORG, RunFilter(), request)).total == 1
    assert await stores.runs.count(ORG, wanted, most=10, teams=request.teams) == 1
