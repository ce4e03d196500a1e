"""DeprovisionUser: a leaver."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from application.provisioning.deprovision_user import DeprovisionUser, DeprovisionUserCommand
from domain.audit.event import AuditAction
from domain.identity.user import UserStatus
from domain.ids import IdentityProviderId, UserId
from tests.builders import numbered
from tests.refusals import refused
from tests.unit.application.provisioning.directories import ABROAD, Directory

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def directory(mocker: MockerFixture) -> Directory:
    return Directory(mocker)


def deleting(directory: Directory) -> DeprovisionUser:
    return DeprovisionUser(
        provisioned=directory.provisioned, access=directory.provisioned, directory_access=directory.access
    )


async def test_a_leaver_is_removed_everywhere_and_from_their_groups(directory: Directory) -> None:
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    group = await creating.execute(CreateGroupCommand(provider=directory.provider, name="all", members=(user_id,)))
    command = DeprovisionUserCommand(provider=directory.provider, user_id=user_id)
    with refused("version_conflict"):
        await deleting(directory).execute(replace(command, expected_version=2))

    await deleting(directory).execute(command)

    assert [directory.user(each).status for each in (user_id, ABROAD)] == [UserStatus.REMOVED] * 2
    assert (directory.user(user_id).name, directory.user(user_id).email) == (None, None)
    assert directory.work.execute.await_count == 2
    assert directory.state.groups[group.id].members == ()
    assert directory.actions[-2:] == [AuditAction.USER_REMOVED] * 2
    with refused("user_not_found"):
        await deleting(directory).execute(command)


async def test_a_directory_removes_none_but_its_own_people(directory: Directory) -> None:
    user_id = (await directory.add()).user.id
    other = replace(directory.provider, id=IdentityProviderId(numbered("idp", 2)))
    for provider, wanted in ((other, user_id), (directory.provider, UserId(numbered("usr", 7)))):
        with refused("user_not_found"):
            await deleting(directory).execute(DeprovisionUserCommand(provider=provider, user_id=wanted))
    assert directory.user(user_id).status is UserStatus.ACTIVE
