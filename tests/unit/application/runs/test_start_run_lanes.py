"""StartRun: the lane of a run."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.runs.lane import Lane
from tests.builders import an_agent
from tests.unit.application.runs.test_start_run import HELLO, Ports


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("K1")
async def test_a_run_is_in_the_lane_that_it_states_or_in_that_of_its_agent(ports: Ports) -> None:
    agent = an_agent()
    ports.use(replace(agent, config=replace(agent.config, lane=Lane.BATCH)))
    assert ports.stored(await ports.start(HELLO)).lane is Lane.BATCH
    assert ports.stored(await ports.start(replace(HELLO, lane=Lane.INTERACTIVE))).lane is Lane.INTERACTIVE
