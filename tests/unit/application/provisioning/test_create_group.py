"""CreateGroup: groups that a directory adds."""

import pytest
from pytest_mock import MockerFixture

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from domain.audit.event import AuditAction
from domain.identity.provisioning import MAX_MEMBERS
from domain.ids import UserId
from tests.builders import ORG, numbered
from tests.refusals import refused
from tests.unit.application.provisioning.directories import ABROAD, Directory

pytestmark = pytest.mark.requirement("P2")


async def test_a_group_has_users_of_the_organization_only_and_its_own_name(mocker: MockerFixture) -> None:
    directory = Directory(mocker)
    directory.put_abroad()
    user_id = (await directory.add()).user.id
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    members = (ABROAD, user_id, UserId(numbered("usr", 7)))
    command = CreateGroupCommand(provider=directory.provider, name="Agents", external_id="g1", members=members)

    group = await creating.execute(command)

    assert (group.organization_id, group.name, group.external_id, group.members) == (ORG, "Agents", "g1", (user_id,))
    assert directory.state.groups == {group.id: group}
    assert directory.actions[-1] is AuditAction.GROUP_CREATED
    with refused("group_name_taken"):
        await creating.execute(command)


async def test_a_group_of_too_many_is_refused(mocker: MockerFixture) -> None:
    directory = Directory(mocker)
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    members = tuple(UserId(numbered("usr", number)) for number in range(MAX_MEMBERS + 1))
    with refused("too_many_members"):
        await creating.execute(CreateGroupCommand(provider=directory.provider, name="All", members=members))
    await creating.execute(CreateGroupCommand(provider=directory.provider, name="All", members=members[1:]))
