"""CreateOrganizationGroup: who creates a group, and of whom."""

from dataclasses import replace

import pytest

from application.groups.create_organization_group import CreateOrganizationGroup, CreateOrganizationGroupCommand
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.ids import IdentityProviderId
from tests.people_builders import USER, an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.groups.organization import BOB, CLAIM, STRANGER, Organization

pytestmark = pytest.mark.requirement("P2")


def creating(ours: Organization) -> CreateOrganizationGroup:
    return CreateOrganizationGroup(organization_groups=ours.groups, checks=ours.checks, clock=ours.clock, ids=ours.ids)


async def test_an_admin_creates_a_group_of_users_and_claims() -> None:
    ours = Organization()

    group = await ours.create(
        "Support", BOB, USER, BOB, claim=replace(CLAIM, provider_id=IdentityProviderId("company"))
    )

    assert (group.members, group.claims, group.version) == ((USER, BOB), (CLAIM,), 1)
    assert await ours.groups.all(group.organization_id) == (group,)
    assert ours.actions == [AuditAction.GROUP_CREATED]


async def test_a_group_has_no_users_of_other_organizations_and_no_unknown_identity_provider() -> None:
    ours = Organization()
    with pytest.raises(ServiceError) as refusal:
        await ours.create("Support", BOB, STRANGER)
    assert [each.path for each in refusal.value.violations] == ["members.1"]
    with refused("group_invalid"):
        await ours.create("Support", claim=replace(CLAIM, provider_id=IdentityProviderId("unknown")))
    with refused("group_invalid"):
        await ours.create(" ")
    assert ours.actions == []


@pytest.mark.parametrize("name", ["Support", "Everybody"])
async def test_a_name_is_used_once_among_all_groups(name: str) -> None:
    ours = Organization()
    await ours.create("Support")
    with refused("group_name_taken"):
        await ours.create(name)


async def test_only_admins_create_groups() -> None:
    ours = Organization()
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await creating(ours).execute(CreateOrganizationGroupCommand(principal=a_principal(role), name="x"))
    theirs = await creating(ours).execute(CreateOrganizationGroupCommand(principal=a_stranger(), name="Support"))
    with refused("group_invalid"):
        await creating(ours).execute(CreateOrganizationGroupCommand(principal=a_stranger(), name="y", claims=(CLAIM,)))
    assert theirs.organization_id == a_stranger().organization_id


async def test_who_acts_as_another_user_creates_no_group() -> None:
    ours = Organization()
    acting = replace(a_principal(), impersonation_id=an_impersonation().id)
    with refused("impersonation_refused"):
        await creating(ours).execute(CreateOrganizationGroupCommand(principal=acting, name="x"))
    assert ours.actions == []
