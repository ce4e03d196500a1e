"""ListPushConfigs: who reads the configs of which task."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.a2a.ports import PushConfigStore
from application.a2a.queries import ListPushConfigs
from application.runs.ports import RunReader
from domain.a2a.push import PushConfig, PushTarget
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.run import Run
from tests.builders import KEY, ORG, RUN, START, a_run
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.webhook_builders import URL

pytestmark = pytest.mark.requirement("X5", "C6")

REQUESTER = replace(a_principal(Role.RUNNER), key_id=KEY)
STORED = a_run(requested_by=KEY)
TARGET = PushTarget(url=URL, token="t0ken", scheme="Bearer", credentials="s3cret")
CONFIG = PushConfig(id="mine", organization_id=ORG, run_id=RUN, target=TARGET, created_at=START)


async def read(mocker: MockerFixture, by: Principal, run: Run | None = STORED) -> tuple[PushConfig, ...]:
    runs = mocker.create_autospec(RunReader, instance=True)
    runs.get.return_value = run
    configs = mocker.create_autospec(PushConfigStore, instance=True)
    configs.of_run.return_value = (CONFIG,)
    return await ListPushConfigs(runs=runs, configs=configs).execute(by, RUN)


@pytest.mark.parametrize("by", [REQUESTER, a_principal(Role.OPERATOR)], ids=["requester", "operator"])
async def test_the_requester_and_operators_read_configs_without_their_secrets(
    mocker: MockerFixture, by: Principal
) -> None:
    [config] = await read(mocker, by)

    assert config.as_json() == {"id": "mine", "taskId": RUN, "url": URL, "authentication": {"scheme": "Bearer"}}
    assert "s3cret" not in repr(config)
    assert "t0ken" not in repr(config)


@pytest.mark.parametrize(
    ("role", "code"), [(Role.RUNNER, "run_not_yours"), (Role.VIEWER, "role_insufficient")], ids=str
)
async def test_others_read_none(mocker: MockerFixture, role: Role, code: str) -> None:
    with refused(code):
        await read(mocker, a_principal(role))


async def test_a_task_that_is_not_there_is_not_found(mocker: MockerFixture) -> None:
    with refused("run_not_found"):
        await read(mocker, REQUESTER, run=None)
