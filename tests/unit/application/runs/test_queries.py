"""GetRun, ListRuns and GetRunEvents: what a viewer reads of runs."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture

from application.runs.ports import RunFilter, RunOrder, RunReader
from application.runs.queries import (
    MOST_COUNTED,
    RECENT_S,
    CountRuns,
    ExportRuns,
    GetQueue,
    GetRun,
    GetRunEvents,
    ListChangedRuns,
    ListRuns,
    RunCount,
)
from application.runs.queue_lines import QueueReader
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import Run, RunStatus
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, OTHER_ORG, RUN, START, a_run, a_run_id, a_thread_id, after
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState, StoredRun, number_events
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.runs.doubles import OneEventAtATime

VIEWER = a_principal(Role.VIEWER)
OLDER = a_run()
NEWER = a_run(a_run_id(2), thread_id=a_thread_id(2), created_at=after(1), status=RunStatus.COMPLETED)

Query = Callable[[RunReader, Principal], Awaitable[object]]


def stored_runs(store: type[InMemoryRunStore] = InMemoryRunStore) -> InMemoryRunStore:
    """Two runs, the older one with three events."""
    state = InMemoryState()
    state.runs = {run.id: StoredRun(run=run) for run in (OLDER, NEWER)}
    number_events(state.runs[RUN], (NewEvent(type=RunEventType.TURN_STARTED, at=START, data={}),) * 3)
    return store(state, InProcessWakeups())


def get(runs: RunReader, by: Principal) -> Awaitable[object]:
    return GetRun(runs=runs).execute(by, NEWER.id)


def events(runs: RunReader, by: Principal) -> Awaitable[object]:
    return GetRunEvents(runs=runs).execute(by, RUN, after_seq=0, limit=10)


def page(runs: RunReader, by: Principal) -> Awaitable[object]:
    return ListRuns(runs=runs).execute(by, RunFilter(), PageRequest(limit=10))


async def test_a_viewer_reads_one_run() -> None:
    assert await get(stored_runs(), VIEWER) == NEWER


async def test_runs_are_listed_newest_first() -> None:
    found = await ListRuns(runs=stored_runs()).execute(VIEWER, RunFilter(), PageRequest(limit=10))

    assert [run.id for run in found.items] == [NEWER.id, OLDER.id]


@pytest.mark.requirement("U6")
async def test_runs_are_counted_no_further_than_the_bound(mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    for stored, counted in (
        (7, RunCount(number=7)),
        (MOST_COUNTED, RunCount(number=MOST_COUNTED)),
        (MOST_COUNTED + 1, RunCount(number=MOST_COUNTED, has_more=True)),
    ):
        runs.count.return_value = stored
        assert await CountRuns(runs=runs).execute(VIEWER, RunFilter(model="a:b")) == counted
    runs.count.assert_awaited_with(ORG, RunFilter(model="a:b"), most=MOST_COUNTED + 1, teams=None)


@pytest.mark.requirement("U6")
async def test_an_export_has_the_runs_of_all_pages_in_its_order(mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    runs.page.side_effect = [Page(items=(OLDER,), next_cursor="after"), Page(items=(NEWER,))]
    export = ExportRuns(runs=runs, clock=FixedClock(START))
    parts = [part async for part in export.execute(VIEWER, RunFilter(), RunOrder.OLDEST)]
    assert parts == [(OLDER,), (NEWER,)]
    assert [call.args[2].cursor for call in runs.page.await_args_list] == [None, "after"]
    assert {call.args[3] for call in runs.page.await_args_list} == {RunOrder.OLDEST}
    assert {call.args[1] for call in runs.page.await_args_list} == {RunFilter()}


@pytest.mark.requirement("U6")
async def test_an_export_by_a_figure_has_runs_from_before_it_began(mocker: MockerFixture) -> None:
    clock = FixedClock(START)

    async def one_page(*_: object) -> Page[Run]:
        clock.advance(60)
        return Page(items=(OLDER,), next_cursor="after" if clock.now() == after(60) else None)

    began = START + timedelta.resolution
    for until, pinned in ((None, began), (after(-1), after(-1)), (after(600), began)):
        runs = mocker.create_autospec(RunReader, instance=True)
        clock = FixedClock(START)
        runs.page.side_effect = one_page
        exported = ExportRuns(runs=runs, clock=clock).execute(VIEWER, RunFilter(until=until), RunOrder.COSTLIEST)
        assert len([part async for part in exported]) == 2
        assert [call.args[1].until for call in runs.page.await_args_list] == [pinned, pinned]


@pytest.mark.requirement("X5")
async def test_runs_are_listed_and_counted_by_their_last_change() -> None:
    found = await ListChangedRuns(runs=stored_runs()).execute(VIEWER, RunFilter(), PageRequest(limit=1))

    assert ([run.id for run in found.page.items], found.total) == ([NEWER.id], 2)


@pytest.mark.parametrize(
    "wanted",
    [RunFilter(status=RunStatus.COMPLETED), RunFilter(thread_id=a_thread_id(2))],
    ids=["status", "thread"],
)
async def test_a_filter_narrows_the_list(wanted: RunFilter) -> None:
    found = await ListRuns(runs=stored_runs()).execute(VIEWER, wanted, PageRequest(limit=10))

    assert found.items == (NEWER,)


@pytest.mark.requirement("E2")
async def test_events_are_read_in_order_after_a_number() -> None:
    found = await GetRunEvents(runs=stored_runs()).execute(VIEWER, RUN, after_seq=1, limit=10)

    assert [event.seq for event in found.items] == [2, 3]


async def test_no_more_events_are_read_than_wanted() -> None:
    found = await GetRunEvents(runs=stored_runs()).execute(VIEWER, RUN, after_seq=0, limit=2)

    assert [event.seq for event in found.items] == [1, 2]


@pytest.mark.parametrize(("after_seq", "cursor"), [(0, "1"), (1, "2"), (2, None)])
async def test_events_have_a_cursor_until_the_last_one_of_the_run(after_seq: int, cursor: str | None) -> None:
    runs = stored_runs(OneEventAtATime)

    found = await GetRunEvents(runs=runs).execute(VIEWER, RUN, after_seq=after_seq, limit=10)

    assert found.next_cursor == cursor


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("query", [get, events])
async def test_a_run_of_another_organization_is_not_found(query: Query) -> None:
    with refused("run_not_found"):
        await query(stored_runs(), a_stranger())


@pytest.mark.requirement("C6")
async def test_runs_of_another_organization_are_not_listed() -> None:
    found = await ListRuns(runs=stored_runs()).execute(a_stranger(), RunFilter(), PageRequest(limit=10))
    counted = await ListChangedRuns(runs=stored_runs()).execute(a_stranger(), RunFilter(), PageRequest(limit=10))

    assert (found.items, counted.page.items, counted.total) == ((), (), 0)


@pytest.mark.parametrize("query", [get, events, page])
async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture, query: Query) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    runs.get.side_effect = runs.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await query(runs, VIEWER)

    runs.events.assert_not_awaited()


@pytest.mark.requirement("K8")
async def test_the_queue_of_all_organizations_needs_a_platform_key(mocker: MockerFixture) -> None:
    lines = mocker.create_autospec(QueueReader, instance=True)
    lines.lines.return_value = ()
    with refused("platform_key_required"):
        await GetQueue(lines=lines, clock=FixedClock()).execute(VIEWER, of_all=True)
    lines.lines.assert_not_awaited()
    await GetQueue(lines=lines, clock=FixedClock()).execute(replace(VIEWER, platform=True), of_all=True)
    lines.lines.assert_awaited_once_with(None)
    await GetQueue(lines=lines, clock=FixedClock()).execute(VIEWER)
    lines.lines.assert_awaited_with(VIEWER.organization_id, teams=None)


@pytest.mark.requirement("K8")
async def test_pages_that_ask_for_the_queue_again_and_again_read_it_once_a_second_for_each_organization(
    mocker: MockerFixture,
) -> None:
    lines, clock = mocker.create_autospec(QueueReader, instance=True), FixedClock()
    lines.lines.return_value = ()
    get_queue = GetQueue(lines=lines, clock=clock)
    for _ in range(3):
        await get_queue.recent(VIEWER)
    assert lines.lines.await_count == 1
    await get_queue.recent(replace(VIEWER, organization_id=OTHER_ORG))
    clock.advance(RECENT_S)
    await get_queue.recent(VIEWER)
    assert [call.args for call in lines.lines.await_args_list] == [(ORG,), (OTHER_ORG,), (ORG,)]
    await get_queue.execute(VIEWER)
    assert lines.lines.await_count == 4, "the API reads it each time"
