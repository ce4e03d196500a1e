"""The line in which a started run waits: what its store tells the queue of the process is what a
read would find."""

from dataclasses import replace

import pytest

from domain.ids import RunId
from domain.runs.lane import Flow, Lane
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.run_flows import SqlRunFlows
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.runs.store import SqlRunStore
from tests.builders import ORG, numbered
from tests.contract.sql_legs import MirrorBox, sql_stores
from tests.contract.test_fair_run_queue import FairQueue, started
from tests.databases import SqliteFiles


@pytest.mark.requirement("K1")
@pytest.mark.requirement("K2")
async def test_a_store_signals_the_run_that_it_started_with_the_line_that_a_read_would_find(
    sqlite_files: SqliteFiles,
) -> None:
    database = SqliteDatabase(sqlite_files.fresh())
    stores = sql_stores(database)
    signalled: dict[RunId, Flow | None] = {}
    runs = SqlRunStore(database=database, wakeups=InProcessWakeups(), box=MirrorBox(), signal=signalled.__setitem__)
    async with started(database):
        flows = SqlRunFlows(database=database, organizations=stores.organizations, agents=stores.agents)
        fair = FairQueue(queue=InProcessRunQueue(flows.of), database=database, stores=replace(stores, runs=runs))
        await fair.organization(ORG, weight=3, max_running=7)
        await fair.submit(1, ORG, lane=Lane.BATCH, max_running=2)
        await fair.submit(1, ORG, agent=2)
        known = await flows.of(signalled)
        read = await flows.of(dict.fromkeys(signalled))
    assert list(signalled) == list(fair.owners)
    assert known == read
    assert {(flow.lane, flow.weight, flow.max_running, flow.agent_max_running) for flow in known.values()} == {
        (Lane.BATCH, 3, 7, 2),
        (Lane.NORMAL, 3, 7, None),
    }


@pytest.mark.requirement("K1")
async def test_the_line_of_a_run_whose_agent_was_deleted_is_read(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh())
    stores = sql_stores(database)
    async with started(database):
        flows = SqlRunFlows(database=database, organizations=stores.organizations, agents=stores.agents)
        fair = FairQueue(queue=InProcessRunQueue(flows.of), database=database, stores=stores)
        await fair.organization(ORG)
        await fair.submit(1)
        [run_id] = fair.owners
        stale = Flow(organization_id=ORG, agent_id=numbered("agt", 9), lane=Lane.BATCH)
        [flow] = (await flows.of({run_id: stale})).values()
    assert flow.lane is Lane.NORMAL
    assert flow.agent_id != stale.agent_id
