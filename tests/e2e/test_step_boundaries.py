"""`kill -9` between, inside and around the steps of a run; `make chaos` does it at every
boundary."""

from pathlib import Path

import pytest

from chaos.boundaries import AnyStage, beside_a_worker, on_postgres, on_sqlite
from tests.databases import PostgresDatabases

pytestmark = [pytest.mark.timeout(900), pytest.mark.requirement("E2", "E3", "E7")]

STARTED = ("SqlRunStore.start inside #1", "SqlRunStore.start committed #1", "SqlRunStore.start committed #2")
EXECUTED = (
    "SqlRunLeases.claim committed #1",
    "SqlRunJournal.commit committed #1",
    "SqlRunJournal.commit inside #2",
    "note under way #1",
    "note answered #1",
    "held_note under way #2",
)
SAID_AND_SENT = ("model says #1", "SqlRunJournal.commit inside #1", "held_note under way #1", "put under way #1")
RESUMED = ("SqlRunStore.change inside #1", "SqlRunStore.change committed #2")


async def assert_it_goes_on(stage: AnyStage, *fatal: str) -> None:
    for boundary in fatal:
        cycle = await stage.play(boundary)
        assert cycle.reached, f"{boundary} is no boundary any more: {cycle.passed}"
        assert not cycle.complaints, (boundary, cycle.complaints)


async def test_a_run_survives_that_the_service_is_killed_anywhere_in_a_step(tmp_path: Path) -> None:
    async with on_sqlite(tmp_path) as stage:
        await assert_it_goes_on(stage, *STARTED, *SAID_AND_SENT, *EXECUTED, *RESUMED)
        again = await stage.play("note under way #1", "SqlRunJournal.commit inside #1", "model says #2")
        assert again.reached, again.passed
        assert not again.complaints


@pytest.mark.requirement("E4", "E6")
async def test_a_run_survives_that_its_worker_is_killed_anywhere_in_a_step(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with postgres_databases.fresh() as url:
        async with on_postgres(tmp_path, url) as stage:
            await assert_it_goes_on(stage, *EXECUTED)


@pytest.mark.requirement("E6")
async def test_a_run_survives_that_the_service_it_was_asked_of_is_killed_in_the_middle_of_a_request(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with postgres_databases.fresh() as url:
        async with beside_a_worker(tmp_path, url) as stage:
            await assert_it_goes_on(stage, *STARTED, *RESUMED)
