"""CancelRun: who may cancel which run."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunReader
from application.runs.stop_run import StopRun
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.run import Run, RunStatus
from tests.builders import KEY, RUN, a_run
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

STORED = a_run(requested_by=KEY)
CANCELLED = replace(STORED, status=RunStatus.CANCELLED)
REQUESTER = replace(a_principal(Role.RUNNER), key_id=KEY)


class Ports:
    """Mocks of what `CancelRun` calls: a run that KEY started, and that ends at once when it is
    stopped."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.runs.get.return_value = STORED
        self.stop_run: MockType = mocker.create_autospec(StopRun, instance=True)
        self.stop_run.execute.return_value = CANCELLED

    async def cancel(self, by: Principal = REQUESTER) -> Run:
        cancelling = CancelRun(runs=self.runs, stop_run=self.stop_run)
        return await cancelling.execute(CancelRunCommand(principal=by, run_id=RUN))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("A12", "C6")
async def test_a_runner_cancels_a_run_of_its_own_key(ports: Ports) -> None:
    assert await ports.cancel() == CANCELLED

    ports.stop_run.execute.assert_awaited_once_with(STORED, actor=KEY)


@pytest.mark.requirement("A12", "C6")
async def test_an_operator_cancels_the_run_of_another_key(ports: Ports) -> None:
    assert await ports.cancel(by=a_principal(Role.OPERATOR)) == CANCELLED

    ports.stop_run.execute.assert_awaited_once_with(STORED, actor="key_operator")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("role", "code"), [(Role.RUNNER, "run_not_yours"), (Role.VIEWER, "role_insufficient")], ids=str
)
async def test_a_key_that_may_not_cancel_the_run_stops_nothing(ports: Ports, role: Role, code: str) -> None:
    with refused(code):
        await ports.cancel(by=a_principal(role))

    ports.stop_run.execute.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_run_that_the_organization_does_not_have_is_not_found(ports: Ports) -> None:
    ports.runs.get.return_value = None

    with refused("run_not_found"):
        await ports.cancel()

    ports.runs.get.assert_awaited_once_with(REQUESTER.organization_id, RUN)
    ports.stop_run.execute.assert_not_awaited()


async def test_a_run_that_is_deleted_before_it_is_stopped_is_not_found(ports: Ports) -> None:
    ports.stop_run.execute.return_value = None

    with refused("run_not_found"):
        await ports.cancel()


async def test_a_run_that_cannot_be_read_is_not_stopped(ports: Ports) -> None:
    ports.runs.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.cancel()

    ports.stop_run.execute.assert_not_awaited()


async def test_a_stop_that_cannot_be_stored_reaches_the_caller(ports: Ports) -> None:
    ports.stop_run.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.cancel()
