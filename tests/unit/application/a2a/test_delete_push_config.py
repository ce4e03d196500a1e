"""DeletePushConfig: whose tasks, and what is audited."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.a2a.delete_push_config import DeletePushConfig, DeletePushConfigCommand
from application.a2a.ports import PushConfigStore
from application.runs.ports import RunReader
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.run import Run
from tests.builders import KEY, ORG, RUN, START, a_run
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("X5")

STORED = a_run(requested_by=KEY)
REQUESTER = replace(a_principal(Role.RUNNER), key_id=KEY)


@pytest.fixture
def configs(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(PushConfigStore, instance=True)


async def delete(mocker: MockerFixture, configs: MockType, by: Principal = REQUESTER, run: Run | None = STORED) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    runs.get.return_value = run
    deleting = DeletePushConfig(runs=runs, configs=configs, clock=FixedClock(START), ids=SequentialIds())
    await deleting.execute(DeletePushConfigCommand(principal=by, run_id=RUN, config_id="mine"))


@pytest.mark.parametrize("removed", [True, False])
async def test_a_config_is_removed_and_removing_it_again_is_no_error(
    mocker: MockerFixture, configs: MockType, removed: bool
) -> None:
    configs.remove.return_value = removed

    await delete(mocker, configs)

    [organization, run_id, config_id, entry] = configs.remove.await_args.args
    assert (organization, run_id, config_id) == (ORG, RUN, "mine")
    assert (entry.action, entry.run_id) == (AuditAction.PUSH_CONFIG_DELETED, RUN)
    assert entry.details == {"run_id": RUN}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("role", "code"), [(Role.RUNNER, "run_not_yours"), (Role.VIEWER, "role_insufficient")], ids=str
)
async def test_a_key_that_may_not_act_on_the_task_removes_nothing(
    mocker: MockerFixture, configs: MockType, role: Role, code: str
) -> None:
    with refused(code):
        await delete(mocker, configs, by=a_principal(role))

    configs.remove.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_task_that_is_not_there_is_not_found(mocker: MockerFixture, configs: MockType) -> None:
    with refused("run_not_found"):
        await delete(mocker, configs, run=None)
