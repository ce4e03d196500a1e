"""StartRun with `interrupt` and `rollback`: whose runs it stops, and what is released with them."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import ConnectionScope
from domain.identity.role import Role
from domain.runs.run import MultitaskStrategy, RunStatus
from tests.builders import ORG, RUN, a_run, a_run_id
from tests.refusals import refused
from tests.run_builders import a_claimed_run, a_state_with_run
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.test_start_run import HELLO, RUNNER, Ports

OVERRIDING = replace(HELLO, principal=a_principal(Role.OPERATOR), strategy=MultitaskStrategy.INTERRUPT)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E5")
async def test_a_run_that_no_worker_executes_is_stopped_by_an_interrupt_and_its_connections_are_released(
    ports: Ports,
) -> None:
    ports.use_state(a_state_with_run(a_run()))

    started = await ports.start(replace(OVERRIDING, run_id=a_run_id(2)))

    stopped = ports.state.runs[RUN].run
    assert (started.interrupted, stopped.status) == ((RUN,), RunStatus.CANCELLED)
    ports.connections.release.assert_awaited_once_with(ConnectionScope(organization_id=ORG, run_id=RUN))
    ports.trace_ended.execute.assert_awaited_once_with(stopped)


@pytest.mark.requirement("E5")
async def test_a_run_in_progress_that_is_interrupted_keeps_its_connections_until_its_worker_stops(
    ports: Ports,
) -> None:
    ports.use_state(a_state_with_run(a_claimed_run()))

    started = await ports.start(replace(OVERRIDING, run_id=a_run_id(2)))

    assert (started.interrupted, started.ended) == ((RUN,), ())
    ports.connections.release.assert_not_awaited()
    ports.trace_ended.execute.assert_not_awaited()


@pytest.mark.requirement("E5", "C6")
@pytest.mark.parametrize("strategy", [MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK])
async def test_a_runner_stops_no_run_of_another_key_by_a_run_of_its_own(
    ports: Ports, strategy: MultitaskStrategy
) -> None:
    ports.use_state(a_state_with_run(a_run()))

    with refused("run_not_yours"):
        await ports.start(replace(HELLO, run_id=a_run_id(2), strategy=strategy))

    assert [stored.run for stored in ports.state.runs.values()] == [a_run()]
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("E5")
async def test_a_runner_stops_its_own_run_by_the_next_one(ports: Ports) -> None:
    ports.use_state(a_state_with_run(a_run(requested_by=RUNNER.key_id)))

    started = await ports.start(replace(HELLO, run_id=a_run_id(2), strategy=MultitaskStrategy.INTERRUPT))

    assert started.interrupted == (RUN,)
