"""Runs that no index has: a page has what is found among the next runs, and its cursor leads to the
rest."""

from dataclasses import replace

import pytest

from application.runs.ports import RunFilter, RunOrder
from application.system.pages import PageRequest
from domain.ids import RunId
from domain.runs.run import RunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.persistence.columns.paging import decode_cursor
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import KEY, ORG, a_thread, a_thread_id, after
from tests.contract.run_steps import run_number, start
from tests.contract.stores import Stores
from tests.contract.test_giving_to_groups import grouped

pytestmark = pytest.mark.requirement("U6")
RARE = RunFilter(model="rare:one")
OF_KEY = RunFilter(started_by="key_of_one", status=RunStatus.QUEUED, statuses=frozenset({RunStatus.COMPLETED}))


async def eleven_runs(stores: Stores) -> list[RunId]:
    """The second and the ninth are of the model `rare:one`, which they have alone. Returns their
    ids."""
    runs = [run_number(number) for number in range(1, 12)]
    for place in (1, 8):
        runs[place] = replace(runs[place], model="rare:one")
    for each in runs:
        await start(stores, each)
    return [runs[1].id, runs[8].id]


async def pages(
    database: Database, wanted: RunFilter, order: RunOrder, *, limit: int = 50
) -> list[tuple[list[RunId], bool]]:
    """The ids of each page, and whether another page follows."""
    store = SqlRunStore(database=database, wakeups=InProcessWakeups(), box=SecretBox(["a key"]), walked=3)
    found: list[tuple[list[RunId], bool]] = []
    request = PageRequest(limit=limit)
    while True:
        page = await store.page(ORG, wanted, request, order)
        found.append(([run.id for run in page.items], page.next_cursor is not None))
        if page.next_cursor is None:
            return found
        request = request.next(page.next_cursor)


async def test_each_page_looks_at_the_next_runs_only_and_none_is_missed(stores: Stores, database: Database) -> None:
    second, ninth = await eleven_runs(stores)
    newest = await pages(database, RARE, RunOrder.NEWEST)
    assert newest == [([ninth], True), ([], True), ([], True), ([second], False)]
    oldest = await pages(database, RARE, RunOrder.OLDEST)
    assert oldest == [([second], True), ([], True), ([ninth], True), ([], False)]
    assert await pages(database, replace(RARE, since=after(3), until=after(9)), RunOrder.OLDEST) == [
        ([], True),
        ([], True),
        ([], False),
    ]


async def test_a_full_page_ends_before_its_walk(stores: Stores, database: Database) -> None:
    await eleven_runs(stores)
    common = RunFilter(model=run_number(1).model)
    found = await pages(database, common, RunOrder.NEWEST, limit=2)
    assert [len(ids) for ids, _ in found] == [2, 2, 2, 2, 1]
    assert len({run_id for ids, _ in found for run_id in ids}) == 9


@pytest.mark.parametrize("wanted", [RunFilter(error="model_auth"), RunFilter(started_by=KEY), RunFilter()])
async def test_what_an_index_has_is_not_walked(stores: Stores, database: Database, wanted: RunFilter) -> None:
    await eleven_runs(stores)
    assert len(await pages(database, wanted, RunOrder.NEWEST)) == 1


@pytest.mark.parametrize("order", [RunOrder.NEWEST, RunOrder.OLDEST])
async def test_the_end_of_a_walk_tells_nothing_of_a_run_that_is_not_seen_and_misses_no_run_of_its_time(
    stores: Stores, database: Database, order: RunOrder
) -> None:
    runs = [run_number(number) for number in range(1, 6)]
    # The walk ends at the third run, which is of another team and as old as the one before and the
    # one behind it.
    runs[1:4] = [replace(each, created_at=after(3)) for each in runs[1:4]]
    thread = replace(a_thread(a_thread_id(2)), team="finance")
    await grouped(stores)
    await stores.threads.add(thread)
    runs[2] = replace(runs[2], thread_id=thread.id, team="finance")
    for each in runs:
        await start(stores, each)
    store = SqlRunStore(database=database, wakeups=InProcessWakeups(), box=SecretBox(["a key"]), walked=3)
    wanted = RunFilter(model=runs[0].model)
    request = PageRequest(teams=frozenset({"sales"}))
    page = await store.page(ORG, wanted, request, order)
    assert page.next_cursor is not None
    assert decode_cursor(page.next_cursor)[1] == ""
    rest = await store.page(ORG, wanted, request.next(page.next_cursor), order)
    seen = [runs[place].id for place in (0, 1, 3, 4)]
    found = [run.id for run in (*page.items, *rest.items)]
    assert found == (seen if order is RunOrder.OLDEST else seen[::-1])
