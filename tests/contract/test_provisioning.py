"""The contracts of `ScimTokens`, `ProvisionedUserStore`, `ProvisionedAccess`, `GroupStore` and
`GroupNames`."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from domain.audit.event import AuditAction, AuditEvent
from domain.identity.provisioning import DirectoryEntry, Group, ProvisionedUser
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import GroupId, IdentityProviderId, UserId
from tests.builders import ORG, OTHER_ORG, START, after, an_agent, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.people_builders import ISSUER, PROVIDER, USER, a_provider, a_user
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P2")
ANN = DirectoryEntry(user_name="ann@example.com", external_id="ann", attributes={"name": {"givenName": "Ann"}})
BOB = DirectoryEntry(user_name="bob@example.com", name="Bob", email="bob@example.com")
OTHER = IdentityProviderId(numbered("idp", 2))
GROUP = GroupId(numbered("grp", 1))


def audit(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.USER_PROVISIONED)


def provisioned(entry: DirectoryEntry = ANN, number: int = 1) -> ProvisionedUser:
    user = replace(
        a_user(UserId(numbered("usr", number)), subject=entry.subject, role=Role.VIEWER),
        name=entry.name,
        email=entry.email,
    )
    return ProvisionedUser(user=user, provider_id=PROVIDER, entry=entry, created_at=after(number), changed_at=START)


def changed_to(described: ProvisionedUser, _: ProvisionedUser) -> tuple[ProvisionedUser, AuditEvent]:
    return described, audit(9)


def a_group(id: GroupId = GROUP, *members: UserId, name: str = "Agents") -> Group:
    return Group(
        id=id,
        organization_id=ORG,
        provider_id=PROVIDER,
        name=name,
        external_id="g1",
        members=members,
        created_at=START,
        changed_at=START,
    )


@pytest.fixture
async def directory(stores: Stores) -> Stores:
    await stores.identity_providers.add(a_provider(), audit(90))
    await stores.identity_providers.add(a_provider(OTHER, name="other", client_id="other"), audit(91))
    return stores


async def test_an_identity_provider_has_one_token(directory: Stores) -> None:
    tokens = directory.provisioned
    await tokens.set_token(a_provider(), "first", START, audit(1))
    await tokens.set_token(a_provider(), "second", START, audit(2))
    assert await tokens.provider_of("first") is None
    assert await tokens.provider_of("second") == PROVIDER
    assert await tokens.revoke_token(a_provider(), audit(3))
    assert not await tokens.revoke_token(a_provider(), audit(4))
    assert await tokens.provider_of("second") is None


async def test_people_come_back_as_they_were_stored_to_their_directory_only(directory: Stores) -> None:
    people, provider, other = directory.provisioned, a_provider(), a_provider(OTHER)
    ann, bob = provisioned(), provisioned(BOB, 2)
    assert await people.add(ann, audit(1)) == ann
    await people.add(bob, audit(2))
    assert await people.get(provider, ann.user.id) == ann
    assert await people.named(provider, "ANN@Example.com") == ann
    assert await people.all(provider) == (ann, bob)
    assert await directory.users.get(ORG, bob.user.id) == bob.user
    assert await people.get(other, ann.user.id) is None
    assert await people.named(other, "ann@example.com") is None
    assert await people.all(other) == ()


async def test_a_person_who_signed_in_before_keeps_id_role_and_status(directory: Stores) -> None:
    signed_in = a_user(status=UserStatus.DEACTIVATED)
    await directory.user_access.add(signed_in, audit(1))
    stored = await directory.provisioned.add(provisioned(number=2), audit(2))
    assert stored.user == replace(signed_in, name=None, email=None)
    assert await directory.provisioned.get(a_provider(), USER) == stored


async def test_a_person_has_a_first_access_or_becomes_another_one_and_never_both(directory: Stores) -> None:
    async def rename(user: User) -> bool:
        def decide(stored: ProvisionedUser) -> tuple[ProvisionedUser, AuditEvent] | None:
            renamed = replace(stored, user=replace(stored.user, subject=f"other-{user.subject}"))
            return None if stored.has_had_access else (renamed, an_audit_event(int(user.subject)))

        return (await directory.provisioned.change(a_provider(), user.id, decide)).user.subject != user.subject

    for number in range(1, 11):
        entry = DirectoryEntry(user_name=f"{number}@example.com", external_id=str(number))
        user = (await directory.provisioned.add(provisioned(entry, number), audit(number + 20))).user
        both = [rename(user), directory.user_access.accessed(user, START)]
        done = await asyncio.gather(*(both if number % 2 else reversed(both)))
        assert sorted(done) == [False, True]


async def test_a_person_who_was_removed_comes_back_without_the_role_of_before(directory: Stores) -> None:
    removed = replace(a_user(role=Role.ADMIN), role_fixed=True).removed()
    await directory.user_access.add(removed, audit(1))
    found = await directory.provisioned.add(provisioned(number=2), audit(2))
    assert (found.user.id, found.user.role, found.user.role_fixed) == (USER, Role.VIEWER, False)
    assert await directory.users.get(ORG, USER) == found.user


async def test_a_user_name_and_a_person_are_stored_once(directory: Stores) -> None:
    people, provider = directory.provisioned, a_provider()
    ann, bob = provisioned(), provisioned(BOB, 2)
    await people.add(ann, audit(1))
    await people.add(bob, audit(2))
    taken = (replace(ANN, user_name="another"), replace(BOB, user_name="ANN@EXAMPLE.COM", external_id="third"))
    for number, entry in enumerate(taken):
        with refused("user_name_taken"):
            await people.add(provisioned(entry, 3 + number), audit(3 + number))
    for entry in (replace(BOB, user_name="ann@example.com"), replace(BOB, external_id="ann")):
        described = bob.described(entry, START, active=True)
        with refused("user_name_taken"):
            await people.change(provider, bob.user.id, partial(changed_to, described))
    assert await people.all(provider) == (ann, bob)


async def test_changes_are_decided_over_what_is_stored(directory: Stores) -> None:
    people, provider = directory.provisioned, a_provider()
    ann = await people.add(provisioned(), audit(1))
    changed = ann.described(BOB, after(5), active=True)

    def described(user: ProvisionedUser) -> tuple[ProvisionedUser, AuditEvent]:
        return user.described(BOB, after(5), active=True), audit(2)

    assert await people.change(provider, ann.user.id, described) == changed
    assert await people.get(provider, ann.user.id) == changed
    assert await people.change(provider, ann.user.id, lambda _: None) == changed
    with refused("user_not_found"):
        await people.change(a_provider(OTHER), ann.user.id, lambda _: None)


async def test_a_removed_person_is_managed_no_more_and_in_no_group(directory: Stores) -> None:
    ann = await directory.provisioned.add(provisioned(), audit(1))
    await directory.groups.add_group(a_group(GROUP, ann.user.id), audit(2))
    await directory.provisioned.remove(a_provider(), ann.user.id)
    assert await directory.provisioned.get(a_provider(), ann.user.id) is None
    assert await directory.groups.groups(ORG) == (a_group(),)
    assert await directory.users.get(ORG, ann.user.id) == ann.user


async def test_a_persons_users_elsewhere_are_those_of_the_same_identity_provider(directory: Stores) -> None:
    here = a_user()
    there = a_user(UserId(numbered("usr", 2)), organization_id=OTHER_ORG)
    by_another = a_user(UserId(numbered("usr", 3)), organization_id=OTHER_ORG, provider_id=OTHER, subject="bob")
    for number, user in enumerate((here, there, by_another)):
        await directory.user_access.add(user, replace(audit(number + 1), organization_id=user.organization_id))
    assert await directory.provisioned.elsewhere(a_provider(), ISSUER, "ann") == (there,)
    assert await directory.provisioned.elsewhere(a_provider(), ISSUER, "bob") == ()


async def test_groups_have_users_of_their_organization(directory: Stores) -> None:
    groups, provider = directory.groups, a_provider()
    ann = (await directory.provisioned.add(provisioned(), audit(1))).user.id
    stranger = a_user(UserId(numbered("usr", 5)), organization_id=OTHER_ORG)
    await directory.user_access.add(stranger, replace(audit(2), organization_id=OTHER_ORG))
    stored = await groups.add_group(a_group(GROUP, stranger.id, ann), audit(3))
    assert stored == a_group(GROUP, ann)
    assert await groups.group(provider, GROUP) == stored
    assert await groups.names_of(PROVIDER, "ann") == ("Agents",)
    assert (await groups.names_of(OTHER, "ann"), await groups.names_of(PROVIDER, "bob")) == ((), ())
    assert (await groups.group(a_provider(OTHER), GROUP), await groups.groups(OTHER_ORG)) == (None, ())


async def test_a_person_of_another_directory_is_in_no_group_for_it(directory: Stores) -> None:
    bob = a_user(UserId(numbered("usr", 2)), subject="bob", provider_id=OTHER)
    managed = replace(provisioned(replace(BOB, external_id="bob"), 2), user=bob, provider_id=OTHER)
    await directory.provisioned.add(managed, audit(1))
    await directory.groups.add_group(a_group(GROUP, bob.id), audit(2))
    assert await directory.groups.names_of(PROVIDER, "bob") == ()


async def test_groups_are_changed_and_deleted_and_their_names_are_distinct(directory: Stores) -> None:
    groups, provider, second = directory.groups, a_provider(), GroupId(numbered("grp", 2))
    ann = (await directory.provisioned.add(provisioned(), audit(1))).user.id
    await groups.add_group(a_group(), audit(2))
    await groups.add_group(a_group(second, name="Others"), audit(3))
    with refused("group_name_taken"):
        await groups.add_group(a_group(GroupId(numbered("grp", 3))), audit(4))
    with refused("group_name_taken"):
        await groups.change_group(provider, second, lambda group: (replace(group, name="Agents"), audit(5)))
    changed = await groups.change_group(provider, GROUP, lambda group: (replace(group, members=(ann,)), audit(6)))
    assert changed == a_group(GROUP, ann)
    assert await groups.groups(ORG) == (changed, a_group(second, name="Others"))
    assert await groups.change_group(provider, GROUP, lambda _: None) == changed
    with refused("group_not_found"):
        await groups.change_group(a_provider(OTHER), GROUP, lambda _: None)
    assert not await groups.delete_group(a_provider(OTHER), GROUP, audit(7))
    assert await groups.delete_group(provider, GROUP, audit(8))
    assert not await groups.delete_group(provider, GROUP, audit(9))
    assert await groups.names_of(PROVIDER, "ann") == ()


async def test_a_group_does_not_get_the_name_of_another_one_that_owns_something(directory: Stores) -> None:
    groups, provider = directory.groups, a_provider()
    await groups.add_group(a_group(name="Finance"), audit(2))
    agent = an_agent()
    await directory.agents.add(replace(agent, config=replace(agent.config, team="Finance")), audit(3))

    of_another = replace(a_group(GroupId(numbered("grp", 2)), name="Finance"), provider_id=OTHER)
    with refused("group_name_taken"):
        await groups.add_group(of_another, audit(4))
    await groups.add_group(replace(of_another, name="Sales"), audit(5))
    with refused("group_name_taken"):
        await groups.change_group(a_provider(OTHER), of_another.id, lambda _: (of_another, audit(6)))

    # The group itself may change, and be made anew by its directory.
    await groups.change_group(provider, GROUP, lambda stored: (replace(stored, external_id="g2"), audit(7)))
    await groups.delete_group(provider, GROUP, audit(8))
    await groups.add_group(a_group(name="Finance"), audit(9))
