"""PutPushConfig: whose tasks, which addresses, and what is audited."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.a2a.ports import PushConfigStore
from application.a2a.put_push_config import PutPushConfig, PutPushConfigCommand
from application.runs.ports import RunReader
from application.webhooks.webhook_check import WebhookCheck
from domain.a2a.push import MAX_CONFIGS, PushConfig, PushTarget
from domain.audit.event import AuditAction
from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.runs.webhook import Webhook
from tests.builders import KEY, ORG, RUN, START, a_run
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.webhook_builders import RECEIVER, URL

pytestmark = pytest.mark.requirement("X5")

REQUESTER = replace(a_principal(Role.RUNNER), key_id=KEY)
TARGET = PushTarget(url=URL, token="t0ken", scheme="Bearer", credentials="s3cret")


class Ports:
    """Mocks of what `PutPushConfig` calls: a run that KEY started."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.runs.get.return_value = a_run(requested_by=KEY)
        self.configs: MockType = mocker.create_autospec(PushConfigStore, instance=True)
        self.webhooks: MockType = mocker.create_autospec(WebhookCheck, instance=True)

    def use_case(self) -> PutPushConfig:
        return PutPushConfig(
            runs=self.runs,
            configs=self.configs,
            webhooks=self.webhooks,
            clock=FixedClock(START),
            ids=SequentialIds(),
        )

    async def put(
        self, target: PushTarget = TARGET, *, by: Principal = REQUESTER, config_id: str = "mine"
    ) -> PushConfig:
        command = PutPushConfigCommand(principal=by, run_id=RUN, target=target, config_id=config_id)
        return await self.use_case().execute(command)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P7")
async def test_no_address_is_kept_in_the_name_of_another_person(ports: Ports) -> None:
    with refused("impersonation_refused"):
        await ports.put(by=replace(REQUESTER, impersonation_id=an_impersonation().id))
    ports.configs.put.assert_not_awaited()


async def test_a_config_is_stored_with_its_entry_which_names_the_receiver_alone(ports: Ports) -> None:
    config = await ports.put()

    [stored, entry] = ports.configs.put.await_args.args
    assert stored == config == PushConfig(id="mine", organization_id=ORG, run_id=RUN, target=TARGET, created_at=START)
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.PUSH_CONFIG_CREATED, KEY, "mine")
    assert entry.run_id == RUN
    assert entry.details == {"run_id": RUN, "receiver": RECEIVER}
    ports.webhooks.require_usable.assert_awaited_once_with(ORG, Webhook(url=URL), path="pushNotificationConfig")


async def test_a_config_without_an_id_has_that_of_its_content(ports: Ports) -> None:
    one, again = await ports.put(config_id=""), await ports.put(config_id="")
    other = await ports.put(replace(TARGET, token="other"), config_id="")

    assert one.id == again.id != other.id


async def test_an_address_that_is_refused_stores_nothing(ports: Ports) -> None:
    ports.webhooks.require_usable.side_effect = invalid("webhook_invalid", "No.")

    with refused("webhook_invalid"):
        await ports.put()

    ports.configs.put.assert_not_awaited()


@pytest.mark.parametrize(
    "wrong",
    [
        replace(TARGET, token="a\r\nX-Other: 1"),
        replace(TARGET, credentials="a\nb"),
        replace(TARGET, credentials=" "),
        replace(TARGET, scheme=""),
        replace(TARGET, scheme="Bearer x"),
        replace(TARGET, token="ü"),
    ],
    ids=repr,
)
async def test_what_would_break_out_of_a_header_is_refused(ports: Ports, wrong: PushTarget) -> None:
    with refused("body_invalid"):
        await ports.put(wrong)

    ports.configs.put.assert_not_awaited()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("role", "code"), [(Role.RUNNER, "run_not_yours"), (Role.VIEWER, "role_insufficient")], ids=str
)
async def test_a_key_that_may_not_act_on_the_task_stores_nothing(ports: Ports, role: Role, code: str) -> None:
    with refused(code):
        await ports.put(by=a_principal(role))

    ports.configs.put.assert_not_awaited()


@pytest.mark.parametrize(("config_id", "fits"), [("c0", True), ("more", False), ("", False)], ids=str)
async def test_a_task_with_all_its_configs_has_room_for_those_only(ports: Ports, config_id: str, fits: bool) -> None:
    config = PushConfig(id="c0", organization_id=ORG, run_id=RUN, target=TARGET, created_at=START)
    ports.configs.of_run.return_value = tuple(replace(config, id=f"c{number}") for number in range(MAX_CONFIGS))
    command = PutPushConfigCommand(principal=REQUESTER, run_id=RUN, target=TARGET, config_id=config_id)

    with nullcontext() if fits else refused("push_configs_limit"):
        await ports.use_case().require_room(command)

    ports.configs.of_run.return_value = ()
    await ports.use_case().require_room(command)
    with refused("run_not_yours"):
        await ports.use_case().require_room(replace(command, principal=a_principal(Role.RUNNER)))


@pytest.mark.requirement("C6")
async def test_a_task_that_is_not_there_is_not_found(ports: Ports) -> None:
    ports.runs.get.return_value = None

    with refused("run_not_found"):
        await ports.put()
