"""UpdateProvisionedUser: what a directory changes of a person."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.provisioning.update_provisioned_user import UpdateProvisionedUser, UpdateProvisionedUserCommand
from domain.audit.event import AuditAction
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, UserId
from tests.builders import numbered
from tests.people_builders import PROVIDER
from tests.refusals import refused
from tests.unit.application.provisioning.directories import ABROAD, ANN, Directory

pytestmark = pytest.mark.requirement("P2")
LEFT = replace(ANN, name="Ann Other")


@pytest.fixture
def directory(mocker: MockerFixture) -> Directory:
    return Directory(mocker)


async def update(
    directory: Directory,
    user_id: UserId,
    entry: DirectoryEntry = ANN,
    *,
    active: bool = True,
    expected_version: int | None = None,
) -> ProvisionedUser:
    updating = UpdateProvisionedUser(
        provisioned=directory.provisioned,
        directory_access=directory.access,
        clock=directory.clock,
        ids=directory.ids,
    )
    command = UpdateProvisionedUserCommand(
        provider=directory.provider,
        user_id=user_id,
        entry=entry,
        active=active,
        expected_version=expected_version,
    )
    return await updating.execute(command)


async def test_a_person_is_described_anew_and_nothing_ends(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    changed = await update(directory, user_id, LEFT, expected_version=1)
    assert (changed.version, changed.entry, directory.user(user_id).name) == (2, LEFT, "Ann Other")
    assert directory.actions[-1] is AuditAction.USER_UPDATED
    assert [*directory.state.audit.values()][-1].actor == PROVIDER
    directory.work.execute.assert_not_awaited()
    with refused("version_conflict"):
        await update(directory, user_id, ANN, expected_version=1)


async def test_a_person_who_is_deactivated_loses_access_everywhere_and_what_they_started_ends(
    directory: Directory,
) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    assert not (await update(directory, user_id, active=False)).active
    assert [directory.user(each).status for each in (user_id, ABROAD)] == [UserStatus.DEACTIVATED] * 2
    ended = [call.args[1] for call in directory.work.execute.await_args_list]
    assert ended == [ApiKeyId(user_id), ApiKeyId(ABROAD)]
    assert (await update(directory, user_id)).active
    assert [directory.user(each).status for each in (user_id, ABROAD)] == [UserStatus.ACTIVE] * 2


async def test_ending_what_a_person_started_is_tried_again(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    await update(directory, user_id, active=False)
    await update(directory, user_id, active=False)
    assert directory.work.execute.await_count == 2


async def test_the_same_description_changes_nothing(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    assert (await update(directory, user_id)).version == 1
    assert directory.actions == [AuditAction.USER_PROVISIONED]


async def test_people_of_others_are_not_found(directory: Directory) -> None:
    with refused("user_not_found"):
        await update(directory, UserId(numbered("usr", 7)))
