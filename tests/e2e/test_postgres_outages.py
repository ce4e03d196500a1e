"""A minute of what `make chaos` does for longer: PostgreSQL stopped, crashed, and its sessions
ended, under runs in hand."""

from collections.abc import Iterator

import pytest

from chaos.postgres_outages import TROUBLES, World, failed_over, replicated_world, under, world

pytestmark = pytest.mark.timeout(300)

RUNS, WORKERS = 40, 2


@pytest.fixture(scope="module")
def harness() -> Iterator[World]:
    with world(workers=WORKERS) as running:
        yield running


@pytest.mark.requirement("E2", "E3", "E4", "E6")
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_runs_complete_without_loss_or_repetition_whatever_becomes_of_the_database(
    trouble: str, harness: World
) -> None:
    assert await under(harness, trouble, TROUBLES[trouble], runs=RUNS) == []


@pytest.mark.requirement("E6", "K6")
async def test_runs_complete_without_loss_or_repetition_when_a_replica_takes_the_place_of_the_database() -> None:
    with replicated_world(workers=WORKERS) as running:
        assert await under(running, "failed over", failed_over, runs=RUNS) == []
