"""UpdateOrganizationGroup: what an admin changes of a group."""

from dataclasses import replace

import pytest

from application.groups.update_organization_group import UpdateOrganizationGroup, UpdateOrganizationGroupCommand
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import UserId
from tests.people_builders import USER, an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.groups.organization import BOB, CLAIM, OF_DIRECTORY, STRANGER, Organization

pytestmark = pytest.mark.requirement("P2")
CHANGE = UpdateOrganizationGroupCommand(principal=a_principal(), group="Support")


def updating(ours: Organization) -> UpdateOrganizationGroup:
    return UpdateOrganizationGroup(organization_groups=ours.groups, checks=ours.checks, clock=ours.clock, ids=ours.ids)


async def test_members_are_added_and_removed_and_the_entry_names_them() -> None:
    ours = Organization()
    await ours.create("Support", USER)

    changed = await updating(ours).execute(
        replace(CHANGE, name="Leads", add_members=(BOB,), remove_members=(USER,), expected_version=1)
    )

    assert (changed.name, changed.members, changed.version) == ("Leads", (BOB,), 2)
    entry = [*ours.state.audit.values()][-1]
    assert entry.action is AuditAction.GROUP_UPDATED
    assert (entry.details["added"], entry.details["removed"]) == ([BOB], [USER])
    with refused("version_conflict"):
        await updating(ours).execute(replace(CHANGE, group=changed.id, name="x", expected_version=1))


async def test_other_claims_end_the_memberships_of_the_claims_before() -> None:
    ours = Organization()
    group = await ours.create("Support", USER, claim=CLAIM)
    await ours.groups.set_claimed(ours.state.users[BOB], [group.id])

    kept = await updating(ours).execute(replace(CHANGE, claims=(CLAIM,)))
    changed = await updating(ours).execute(replace(CHANGE, claims=(replace(CLAIM, value="leads"),)))

    assert (kept.members_by_claim, kept.version) == ((BOB,), 1)
    assert (changed.members, changed.members_by_claim) == ((USER,), ())


async def test_a_change_of_nothing_is_none() -> None:
    ours = Organization()
    group = await ours.create("Support", USER)
    assert await updating(ours).execute(replace(CHANGE, name="Support", add_members=(USER,))) == group
    assert ours.actions == [AuditAction.GROUP_CREATED]


@pytest.mark.parametrize("group", [OF_DIRECTORY, "Everybody"])
async def test_a_group_of_a_directory_is_changed_in_the_directory_only(group: str) -> None:
    ours = Organization()
    with refused("group_managed_by_directory"):
        await updating(ours).execute(replace(CHANGE, group=group, add_members=(BOB,)))


async def test_strangers_taken_names_and_unknown_groups_are_refused() -> None:
    ours = Organization()
    await ours.create("Support")
    with refused("group_invalid"):
        await updating(ours).execute(replace(CHANGE, add_members=(STRANGER,)))
    with refused("group_invalid"):
        await updating(ours).execute(replace(CHANGE, members=(UserId("usr_unknown"),)))
    with refused("group_name_taken"):
        await updating(ours).execute(replace(CHANGE, name="Everybody"))
    with refused("group_not_found"):
        await updating(ours).execute(replace(CHANGE, group="Others"))
    with refused("group_not_found"):
        await updating(ours).execute(replace(CHANGE, principal=a_stranger()))
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await updating(ours).execute(replace(CHANGE, principal=a_principal(role)))


async def test_who_acts_as_another_user_changes_no_group() -> None:
    ours = Organization()
    group = await ours.create("Support")
    acting = replace(a_principal(), impersonation_id=an_impersonation().id)
    with refused("impersonation_refused"):
        await updating(ours).execute(replace(CHANGE, principal=acting, add_members=(BOB,)))
    assert await ours.groups.all(group.organization_id) == (group,)
