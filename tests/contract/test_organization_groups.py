"""The contracts of `OrganizationGroupStore`, `ClaimedGroups` and `Memberships`."""

from dataclasses import replace

import pytest

from domain.audit.event import AuditAction, AuditEvent
from domain.identity.organization_group import GroupClaim, OrganizationGroup
from domain.identity.provisioning import Group
from domain.identity.user import UserStatus
from domain.ids import GroupId, UserId
from tests.builders import ORG, OTHER_ORG, START, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.people_builders import PROVIDER, USER, a_provider, a_user
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P2")
BOB = UserId(numbered("usr", 2))
GROUP, SECOND = GroupId(numbered("grp", 1)), GroupId(numbered("grp", 2))
CLAIM = GroupClaim(provider_id=PROVIDER, claim="groups", value="support")


def audit(number: int) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.GROUP_UPDATED)


def a_group(id: GroupId = GROUP, *members: UserId, name: str = "Support") -> OrganizationGroup:
    return OrganizationGroup(id=id, organization_id=ORG, name=name, members=members, created_at=START, changed_at=START)


@pytest.fixture
async def people(stores: Stores) -> Stores:
    await stores.identity_providers.add(a_provider(), audit(90))
    await stores.user_access.add(a_user(), audit(91))
    await stores.user_access.add(a_user(BOB, subject="bob"), audit(92))
    return stores


async def test_groups_are_stored_changed_and_deleted_and_their_names_are_distinct(people: Stores) -> None:
    groups = people.organization_groups
    first, second = replace(a_group(GROUP, USER), claims=(CLAIM,)), a_group(SECOND, name="Leads")
    await groups.add(first, audit(1))
    await groups.add(second, audit(2))
    assert await groups.all(ORG) == (second, first)
    assert await groups.all(OTHER_ORG) == ()
    with refused("group_name_taken"):
        await groups.add(a_group(GroupId(numbered("grp", 3))), audit(3))
    with refused("group_name_taken"):
        await groups.change(ORG, SECOND, lambda group: (replace(group, name="Support"), audit(4)))
    changed = await groups.change(ORG, GROUP, lambda group: (replace(group, members=(USER, BOB)), audit(5)))
    assert (await groups.all(ORG))[1] == changed == replace(first, members=(USER, BOB))
    assert await groups.change(ORG, GROUP, lambda _: None) == changed
    with refused("group_not_found"):
        await groups.change(OTHER_ORG, GROUP, lambda _: None)
    assert not await groups.delete(OTHER_ORG, GROUP, audit(6))
    assert await groups.delete(ORG, GROUP, audit(7))
    assert not await groups.delete(ORG, GROUP, audit(8))
    assert await groups.groups_of(ORG, USER) == frozenset()


async def test_strangers_are_unknown_and_removed_users_and_those_of_other_organizations(people: Stores) -> None:
    elsewhere, removed = UserId(numbered("usr", 3)), UserId(numbered("usr", 4))
    await people.user_access.add(a_user(removed, subject="eve", status=UserStatus.REMOVED), audit(1))
    asked = (elsewhere, USER, removed, BOB)
    assert await people.organization_groups.strangers(ORG, asked) == (elsewhere, removed)
    assert await people.organization_groups.strangers(OTHER_ORG, (USER,)) == (USER,)
    assert await people.organization_groups.strangers(ORG, ()) == ()


async def test_a_person_is_in_groups_by_hand_by_claim_and_by_the_directory_until_they_leave(people: Stores) -> None:
    groups, ann = people.organization_groups, a_user()
    await groups.add(replace(a_group(GROUP, USER), claims=(CLAIM,)), audit(1))
    await groups.add(replace(a_group(SECOND, name="Leads"), claims=(CLAIM,)), audit(2))
    of_directory = Group(
        id=GroupId(numbered("grp", 3)),
        organization_id=ORG,
        provider_id=PROVIDER,
        name="Everybody",
        members=(USER, BOB),
        created_at=START,
        changed_at=START,
    )
    await people.groups.add_group(of_directory, audit(3))
    assert await groups.group_names(ORG) == {"Support", "Leads", "Everybody"}
    assert await groups.group_names(OTHER_ORG) == frozenset()
    known = await groups.with_claims(ORG)
    assert [(each.id, each.claims, each.members) for each in known] == [(SECOND, (CLAIM,), ()), (GROUP, (CLAIM,), ())]

    await groups.set_claimed(ann, [GROUP, SECOND, GroupId(numbered("grp", 9))])
    await groups.set_claimed(ann, [GROUP, SECOND])
    assert await groups.groups_of(ORG, USER) == {"Support", "Leads", "Everybody"}
    assert (await groups.all(ORG))[1] == replace(a_group(GROUP, USER), claims=(CLAIM,), members_by_claim=(USER,))

    await groups.set_claimed(ann, [])
    assert await groups.groups_of(ORG, USER) == {"Support", "Everybody"}
    assert await groups.groups_of(ORG, BOB) == {"Everybody"}
    assert await groups.groups_of(OTHER_ORG, USER) == frozenset()

    await groups.leave_all(ORG, USER)
    assert await groups.groups_of(ORG, USER) == {"Everybody"}
