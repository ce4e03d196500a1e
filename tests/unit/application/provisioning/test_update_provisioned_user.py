"""UpdateProvisionedUser: what a directory changes of a person."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.provisioning.update_provisioned_user import UpdateProvisionedUser, UpdateProvisionedUserCommand
from domain.audit.event import AuditAction
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, UserId
from tests.builders import OTHER_ORG, START, numbered
from tests.people_builders import PROVIDER, a_user
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
    expected_active: bool | None = None,
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
        expected_active=expected_active,
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
    assert ended == [ApiKeyId(ABROAD), ApiKeyId(user_id)]


async def test_a_person_is_admitted_again_at_home_and_elsewhere_by_the_admins_there(directory: Directory) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    await update(directory, user_id, active=False)
    assert (await update(directory, user_id)).active
    assert directory.user(user_id).status is UserStatus.ACTIVE
    assert directory.user(ABROAD).status is UserStatus.DEACTIVATED


async def test_a_rename_and_an_activation_do_not_undo_what_an_admin_elsewhere_decided(directory: Directory) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    for refused_there in (replace(directory.user(ABROAD), status=UserStatus.DEACTIVATED), a_user(ABROAD).removed()):
        there = directory.state.users[ABROAD] = replace(refused_there, organization_id=OTHER_ORG)
        for entry, active in ((LEFT, True), (ANN, False), (LEFT, True)):
            await update(directory, user_id, entry, active=active)
            assert directory.user(ABROAD) == there


async def test_a_removed_user_gets_a_name_again_only_when_the_directory_admits_them(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    removed = replace(directory.user(user_id), role=Role.ADMIN, role_fixed=True).removed()
    directory.state.users[user_id] = removed
    await update(directory, user_id, LEFT, active=False)
    assert directory.user(user_id) == removed
    assert (await update(directory, user_id, LEFT)).active
    user = directory.user(user_id)
    assert (user.status, user.name, user.role, user.role_fixed) == (UserStatus.ACTIVE, "Ann Other", Role.VIEWER, False)


async def test_a_deactivation_that_failed_is_completed_by_the_next(directory: Directory) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    directory.work.execute.side_effect = ConnectionError
    with pytest.raises(ConnectionError):
        await update(directory, user_id, active=False)
    assert [directory.user(each).status for each in (user_id, ABROAD)] == [UserStatus.ACTIVE, UserStatus.DEACTIVATED]
    directory.work.execute.side_effect = None
    directory.work.execute.reset_mock()
    await update(directory, user_id, active=False)
    assert directory.user(user_id).status is UserStatus.DEACTIVATED
    assert directory.work.execute.await_count == 2


async def test_a_change_that_read_an_active_person_undoes_no_deactivation_meanwhile(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    await update(directory, user_id, active=False)
    with refused("version_conflict"):
        await update(directory, user_id, LEFT, expected_version=1, expected_active=True)
    assert directory.user(user_id).status is UserStatus.DEACTIVATED
    await update(directory, user_id, LEFT, expected_version=1, expected_active=False)


async def test_a_user_becomes_another_person_only_before_the_first_access(directory: Directory) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    other = replace(ANN, external_id="bob")
    new = directory.user(user_id)
    for had_access in ({"role": Role.ADMIN, "role_fixed": True}, {"last_sign_in_at": START}, {"role": Role.OPERATOR}):
        directory.state.users[user_id] = replace(new, **had_access)
        with refused("subject_fixed"):
            await update(directory, user_id, other)
    directory.state.users[user_id] = new
    assert (await update(directory, user_id, other)).active
    assert (directory.user(user_id).subject, directory.user(user_id).status) == ("bob", UserStatus.ACTIVE)
    assert directory.user(ABROAD).status is UserStatus.DEACTIVATED
    assert directory.work.execute.await_count == 2
    [entry] = [each for each in directory.state.audit.values() if "subject" in each.details]
    assert (entry.details["previous_subject"], entry.details["subject"]) == ("ann", "bob")


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
