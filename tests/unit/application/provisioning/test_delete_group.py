"""DeleteGroup: its members stay."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from application.provisioning.delete_group import DeleteGroup, DeleteGroupCommand
from domain.audit.event import AuditAction
from domain.ids import IdentityProviderId
from tests.builders import numbered
from tests.refusals import refused
from tests.unit.application.provisioning.directories import Directory

pytestmark = pytest.mark.requirement("P2")


async def test_a_group_is_deleted_by_its_own_directory_once_and_its_members_stay(mocker: MockerFixture) -> None:
    directory = Directory(mocker)
    user_id = (await directory.add()).user.id
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    group = await creating.execute(CreateGroupCommand(provider=directory.provider, name="all", members=(user_id,)))
    deleting = DeleteGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    other = replace(directory.provider, id=IdentityProviderId(numbered("idp", 2)))
    with refused("group_not_found"):
        await deleting.execute(DeleteGroupCommand(provider=other, group_id=group.id))

    await deleting.execute(DeleteGroupCommand(provider=directory.provider, group_id=group.id))

    assert (directory.state.groups, directory.user(user_id).id) == ({}, user_id)
    assert directory.actions[-1] is AuditAction.GROUP_DELETED
    with refused("group_not_found"):
        await deleting.execute(DeleteGroupCommand(provider=directory.provider, group_id=group.id))
