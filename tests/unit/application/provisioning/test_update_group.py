"""UpdateGroup: what a directory changes of a group."""

import pytest
from pytest_mock import MockerFixture

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from application.provisioning.update_group import UpdateGroup, UpdateGroupCommand
from domain.audit.event import AuditAction
from domain.identity.provisioning import MAX_MEMBERS, Group
from domain.ids import GroupId, UserId
from tests.builders import numbered
from tests.refusals import refused
from tests.unit.application.provisioning.directories import Directory

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def directory(mocker: MockerFixture) -> Directory:
    return Directory(mocker)


async def a_group(directory: Directory, name: str = "Agents") -> Group:
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    return await creating.execute(CreateGroupCommand(provider=directory.provider, name=name))


def updating(directory: Directory) -> UpdateGroup:
    return UpdateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)


async def test_name_and_members_are_replaced(directory: Directory) -> None:
    group, user = await a_group(directory), (await directory.add()).user
    command = UpdateGroupCommand(
        provider=directory.provider, group_id=group.id, name="Others", members=(user.id, user.id), expected_version=1
    )
    changed = await updating(directory).execute(command)
    assert (changed.name, changed.members, changed.version) == ("Others", (user.id,), 2)
    assert await directory.groups.names_of(directory.provider.id, "ann") == ("Others",)
    assert directory.actions[-1] is AuditAction.GROUP_UPDATED
    with refused("version_conflict"):
        await updating(directory).execute(command)


async def test_a_group_does_not_grow_beyond_its_maximum(directory: Directory) -> None:
    group = await a_group(directory)
    members = tuple(UserId(numbered("usr", number)) for number in range(MAX_MEMBERS + 1))
    command = UpdateGroupCommand(provider=directory.provider, group_id=group.id, name="Agents", members=members)
    with refused("too_many_members"):
        await updating(directory).execute(command)


async def test_a_change_of_nothing_is_none(directory: Directory) -> None:
    group = await a_group(directory)
    command = UpdateGroupCommand(provider=directory.provider, group_id=group.id, name="Agents")
    assert await updating(directory).execute(command) == group
    assert directory.actions == [AuditAction.GROUP_CREATED]


async def test_a_name_that_is_taken_and_an_unknown_group_are_refused(directory: Directory) -> None:
    group = await a_group(directory)
    await a_group(directory, "Others")
    with refused("group_name_taken"):
        await updating(directory).execute(
            UpdateGroupCommand(provider=directory.provider, group_id=group.id, name="Others")
        )
    unknown = GroupId(numbered("grp", 7))
    with refused("group_not_found"):
        await updating(directory).execute(UpdateGroupCommand(provider=directory.provider, group_id=unknown, name="x"))
