"""Reads of provisioned people and groups: who sees whom."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from application.provisioning.queries import FindGroups, FindProvisionedUsers
from domain.ids import IdentityProviderId
from tests.builders import numbered
from tests.refusals import refused
from tests.unit.application.provisioning.directories import Directory

pytestmark = pytest.mark.requirement("P2")


async def test_a_directory_sees_its_own_people_and_groups(mocker: MockerFixture) -> None:
    directory = Directory(mocker)
    ann = await directory.add()
    creating = CreateGroup(groups=directory.groups, clock=directory.clock, ids=directory.ids)
    group = await creating.execute(CreateGroupCommand(provider=directory.provider, name="all"))
    people, groups = FindProvisionedUsers(provisioned=directory.provisioned), FindGroups(groups=directory.groups)
    other = replace(directory.provider, id=IdentityProviderId(numbered("idp", 2)))

    assert await people.execute(directory.provider, ann.user.id) == ann
    assert await people.named(directory.provider, "ANN@example.com") == (ann,)
    assert await people.named(directory.provider, "bob") == ()
    assert (await people.all(directory.provider), await people.all(other)) == ((ann,), ())
    with refused("user_not_found"):
        await people.execute(other, ann.user.id)
    assert await groups.execute(directory.provider, group.id) == group
    assert (await groups.all(directory.provider), await groups.all(other)) == ((group,), ())
    with refused("group_not_found"):
        await groups.execute(other, group.id)
