"""Reads of groups: admins see those of their organization."""

import pytest

from application.groups.queries import GetGroup, ListGroups
from domain.identity.role import Role
from tests.people_builders import USER
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.groups.organization import OF_DIRECTORY, Organization

pytestmark = pytest.mark.requirement("P2")


async def test_admins_see_groups_of_the_organization_and_of_directories_by_name() -> None:
    ours = Organization()
    group = await ours.create("Support", USER)
    listing = ListGroups(organization_groups=ours.groups, groups=ours.of_directories)
    getting = GetGroup(list_groups=listing)

    assert await listing.execute(a_principal()) == (ours.state.groups[OF_DIRECTORY], group)
    assert await listing.execute(a_stranger()) == ()
    assert await getting.execute(a_principal(), "Support") == await getting.execute(a_principal(), group.id) == group
    with refused("group_not_found"):
        await getting.execute(a_stranger(), group.id)
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await listing.execute(a_principal(role))
