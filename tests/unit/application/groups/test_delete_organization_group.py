"""DeleteOrganizationGroup: who deletes which group."""

from dataclasses import replace

import pytest

from application.groups.delete_organization_group import DeleteOrganizationGroup, DeleteOrganizationGroupCommand
from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.builders import ORG
from tests.people_builders import USER, an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.groups.organization import OF_DIRECTORY, Organization

pytestmark = pytest.mark.requirement("P2")


async def test_admins_delete_groups_of_the_organization_but_not_of_a_directory() -> None:
    ours = Organization()
    await ours.create("Support", USER)
    deleting = DeleteOrganizationGroup(
        organization_groups=ours.groups, checks=ours.checks, clock=ours.clock, ids=ours.ids
    )
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await deleting.execute(DeleteOrganizationGroupCommand(principal=a_principal(role), group="Support"))
    with refused("group_not_found"):
        await deleting.execute(DeleteOrganizationGroupCommand(principal=a_stranger(), group="Support"))
    with refused("group_managed_by_directory"):
        await deleting.execute(DeleteOrganizationGroupCommand(principal=a_principal(), group=OF_DIRECTORY))

    await deleting.execute(DeleteOrganizationGroupCommand(principal=a_principal(), group="Support"))

    assert await ours.groups.all(ORG) == ()
    assert USER in ours.state.users
    assert ours.actions[-1] is AuditAction.GROUP_DELETED


async def test_who_acts_as_another_user_deletes_no_group() -> None:
    ours = Organization()
    group = await ours.create("Support", USER)
    deleting = DeleteOrganizationGroup(
        organization_groups=ours.groups, checks=ours.checks, clock=ours.clock, ids=ours.ids
    )
    acting = replace(a_principal(), impersonation_id=an_impersonation().id)
    with refused("impersonation_refused"):
        await deleting.execute(DeleteOrganizationGroupCommand(principal=acting, group="Support"))
    assert await ours.groups.all(ORG) == (group,)
