"""The contracts of `IdentityProviderStore`, `IdentityProviderDirectory`, `UserStore` and
`UserAccess`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.identity_provider import MAX_IDENTITY_PROVIDERS, RoleRule
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import IdentityProviderId, UserId
from tests.builders import ORG, OTHER_ORG, after, an_audit_event, numbered
from tests.contract.paging import all_of
from tests.contract.stores import Stores
from tests.people_builders import ISSUER, PROVIDER, USER, a_provider, a_user
from tests.refusals import refused

OTHER = IdentityProviderId(numbered("idp", 2))


def audit(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.USER_UPDATED)


@pytest.mark.requirement("P1")
async def test_an_identity_provider_comes_back_as_it_was_stored(stores: Stores) -> None:
    rules = (RoleRule(claim="groups", value="a", role=Role.ADMIN, organization_id=OTHER_ORG),)
    provider = a_provider(client_secret="s", cli_client_id="cli", audiences=("api",), rules=rules, installation=True)
    await stores.identity_providers.add(provider, audit())
    assert await stores.identity_providers.all(ORG) == (provider,)
    assert await stores.identity_providers.named(PROVIDER) == provider
    assert await stores.identity_providers.of_issuer(ISSUER) == (provider,)
    assert await stores.identity_providers.all(OTHER_ORG) == ()
    assert await stores.identity_providers.of_issuer(f"{ISSUER}/") == ()


async def test_names_of_an_organization_and_audiences_of_an_issuer_are_distinct(stores: Stores) -> None:
    providers = stores.identity_providers
    await providers.add(a_provider(audiences=("api",), cli_client_id="cli"), audit(1))
    with refused("identity_provider_exists"):
        await providers.add(a_provider(OTHER, issuer="https://other.example.com"), audit(2))
    for taken in ("dragoman", "api", "cli"):
        with refused("identity_provider_audience_taken"):
            await providers.add(a_provider(OTHER, organization_id=OTHER_ORG, client_id=taken), audit(2))
    other = a_provider(OTHER, organization_id=OTHER_ORG, client_id="other")
    await providers.add(other, audit(2))
    with refused("identity_provider_audience_taken"):
        await providers.save(replace(other, audiences=("api",)), expected_version=1, audit=audit(3))
    assert await providers.all(OTHER_ORG) == (other,)


async def test_an_organization_has_a_bounded_number_of_identity_providers(stores: Stores) -> None:
    for number in range(MAX_IDENTITY_PROVIDERS):
        name = f"p{number}"
        provider = a_provider(IdentityProviderId(numbered("idp", number + 1)), name=name, client_id=name)
        await stores.identity_providers.add(provider, audit(number + 1))
    with refused("too_many_identity_providers"):
        await stores.identity_providers.add(
            a_provider(IdentityProviderId(numbered("idp", 99)), name="more", client_id="more"), audit(99)
        )


async def test_a_change_of_an_identity_provider_needs_the_version_that_is_stored(stores: Stores) -> None:
    await stores.identity_providers.add(a_provider(), audit(1))
    changed = replace(a_provider(), version=2, rules=())
    with refused("version_conflict"):
        await stores.identity_providers.save(changed, expected_version=2, audit=audit(2))
    await stores.identity_providers.save(changed, expected_version=1, audit=audit(2))
    assert await stores.identity_providers.named(PROVIDER) == changed
    with refused("identity_provider_not_found"):
        await stores.identity_providers.save(replace(changed, id=OTHER), expected_version=2, audit=audit(3))


async def test_the_sign_in_page_has_those_of_the_installation_and_of_the_organization(stores: Stores) -> None:
    ours = a_provider(name="b")
    everybodys = a_provider(OTHER, organization_id=OTHER_ORG, name="a", client_id="other", installation=True)
    await stores.identity_providers.add(ours, audit(1))
    await stores.identity_providers.add(everybodys, audit(2))
    assert await stores.identity_providers.offered(ORG) == (everybodys, ours)
    assert await stores.identity_providers.offered(None) == (everybodys,)


@pytest.mark.requirement("P2")
async def test_users_of_a_deleted_identity_provider_are_not_admitted(stores: Stores) -> None:
    await stores.identity_providers.add(a_provider(), audit(1))
    await stores.user_access.add(a_user(), audit(2))
    assert await stores.user_access.admitted(ORG, USER) == a_user()
    assert not await stores.identity_providers.delete(OTHER_ORG, PROVIDER, audit(3))
    assert await stores.identity_providers.delete(ORG, PROVIDER, audit(3))
    assert not await stores.identity_providers.delete(ORG, PROVIDER, audit(4))
    assert await stores.user_access.admitted(ORG, USER) is None
    assert await stores.users.get(ORG, USER) == a_user()


@pytest.mark.requirement("P2")
async def test_a_user_of_the_installations_provider_is_admitted_in_their_organization_only(stores: Stores) -> None:
    await stores.identity_providers.add(a_provider(organization_id=OTHER_ORG, installation=True), audit(1))
    await stores.user_access.add(a_user(), audit(2))
    assert await stores.user_access.admitted(ORG, USER) == a_user()
    assert await stores.user_access.admitted(OTHER_ORG, USER) is None
    assert await stores.user_access.find(OTHER_ORG, ISSUER, "ann") is None
    assert await stores.users.get(OTHER_ORG, USER) is None


async def test_a_person_has_one_user_in_an_organization(stores: Stores) -> None:
    assert await stores.user_access.add(a_user(), audit(1)) == a_user()
    second = replace(a_user(), id=UserId(numbered("usr", 2)), role=Role.ADMIN)
    assert await stores.user_access.add(second, audit(2)) == a_user()
    assert await stores.user_access.find(ORG, ISSUER, "ann") == a_user()
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (audit(1),)


async def test_what_the_provider_says_is_stored_while_the_user_is_active(stores: Stores) -> None:
    await stores.user_access.add(a_user(), audit(1))
    seen = replace(a_user(), name="Ann B.", role=Role.VIEWER, last_sign_in_at=after(60))
    await stores.user_access.saw(seen, audit(2))
    assert await stores.users.get(ORG, USER) == seen

    await stores.users.change(ORG, USER, lambda user: (replace(user, status=UserStatus.DEACTIVATED), audit(3)))
    await stores.user_access.saw(replace(seen, role=Role.ADMIN), audit(4))
    assert await stores.users.get(ORG, USER) == replace(seen, status=UserStatus.DEACTIVATED)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (audit(3), audit(2), audit(1))


@pytest.mark.requirement("P2")
async def test_an_access_is_stored_of_an_active_user_who_is_still_that_person(stores: Stores) -> None:
    await stores.user_access.add(a_user(), audit(1))
    assert await stores.user_access.accessed(a_user(), after(60))
    accessed = replace(a_user(), last_sign_in_at=after(60))
    assert await stores.users.get(ORG, USER) == accessed
    for stranger in (
        replace(a_user(), subject="bob"),
        replace(a_user(), issuer=f"{ISSUER}/other"),
        replace(a_user(), organization_id=OTHER_ORG),
        a_user(UserId(numbered("usr", 9))),
    ):
        assert not await stores.user_access.accessed(stranger, after(120))
    assert await stores.users.get(ORG, USER) == accessed
    await stores.users.change(ORG, USER, lambda user: (replace(user, status=UserStatus.DEACTIVATED), audit(2)))
    assert not await stores.user_access.accessed(a_user(), after(120))


async def test_a_role_that_an_admin_chose_during_a_sign_in_stays(stores: Stores) -> None:
    await stores.user_access.add(a_user(), audit(1))
    seen = replace(a_user(), name="Ann B.", role=Role.ADMIN)
    chosen = replace(a_user(), role=Role.VIEWER, role_fixed=True)
    await stores.users.change(ORG, USER, lambda _: (chosen, audit(2)))
    await stores.user_access.saw(seen, audit(3))
    assert await stores.users.get(ORG, USER) == replace(chosen, name="Ann B.")


async def test_a_change_that_is_none_or_is_refused_leaves_the_user(stores: Stores) -> None:
    await stores.user_access.add(a_user(), audit(1))
    assert await stores.users.change(ORG, USER, lambda _: None) == a_user()

    def refuse(_: User) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await stores.users.change(ORG, USER, refuse)
    with refused("user_not_found"):
        await stores.users.change(OTHER_ORG, USER, lambda user: (user, audit(2)))
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (audit(1),)


async def test_users_are_listed_newest_first_without_removed_ones(stores: Stores) -> None:
    users = [
        replace(a_user(UserId(numbered("usr", number)), subject=f"p{number}"), created_at=after(number))
        for number in (1, 2, 3)
    ]
    for number, user in enumerate(users, start=1):
        await stores.user_access.add(user, audit(number))
    await stores.users.change(ORG, users[1].id, lambda user: (user.removed(), audit(4)))
    page = await stores.users.page(ORG, PageRequest(limit=1))
    assert page.items == (users[2],)
    assert await all_of(partial(stores.users.page, ORG)) == (users[2], users[0])
    assert await all_of(partial(stores.users.page, OTHER_ORG)) == ()
    removed = partial(stores.users.page, ORG, status=UserStatus.REMOVED)
    assert [user.id for user in await all_of(removed)] == [users[1].id]
    assert await all_of(partial(stores.users.page, ORG, status=UserStatus.ACTIVE)) == (users[2], users[0])
