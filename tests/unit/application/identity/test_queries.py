"""Reads of identity providers and users: who may read which."""

from dataclasses import replace

import pytest

from application.identity.queries import (
    GetIdentityProvider,
    GetUser,
    ListIdentityProviders,
    ListImpersonations,
    ListOfferedProviders,
    ListSessions,
    ListTeams,
    ListUsers,
)
from domain.identity.impersonation import SHOWN_FOR
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, GroupId
from tests.builders import ORG, after
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryIdentityProviderStore, InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import PROVIDER, USER, a_console_session, a_person, a_provider, a_user, an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below


@pytest.fixture
def state() -> InMemoryState:
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.users[USER] = a_user()
    return state


@pytest.mark.requirement("P1")
async def test_admins_read_the_identity_providers_of_their_organization(state: InMemoryState) -> None:
    providers = InMemoryIdentityProviderStore(state)
    get, all_of_them = GetIdentityProvider(providers=providers), ListIdentityProviders(providers=providers)
    assert await get.execute(a_principal(), "company") == a_provider()
    assert await all_of_them.execute(a_principal()) == (a_provider(),)
    with refused("identity_provider_not_found"):
        await get.execute(a_stranger(), PROVIDER)
    assert await all_of_them.execute(a_stranger()) == ()
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await get.execute(a_principal(role), "company")
        with refused("role_insufficient"):
            await all_of_them.execute(a_principal(role))


@pytest.mark.requirement("P1")
async def test_everybody_sees_what_the_sign_in_page_offers(state: InMemoryState) -> None:
    offered = ListOfferedProviders(identity_providers=InMemoryIdentityProviderStore(state))
    assert await offered.execute(None) == ()
    assert await offered.execute(ORG) == (a_provider(),)


@pytest.mark.requirement("P2")
async def test_admins_read_users_and_users_read_themselves(state: InMemoryState) -> None:
    users = InMemoryUserStore(state)
    get, all_of_them = GetUser(users=users), ListUsers(users=users)
    assert await get.execute(a_principal(), USER) == a_user()
    assert (await all_of_them.execute(a_principal())).items == (a_user(),)
    assert (await all_of_them.execute(a_principal(), status=UserStatus.REMOVED)).items == ()
    own = replace(a_principal(Role.VIEWER), key_id=ApiKeyId(USER))
    assert await get.execute(own, USER) == a_user()
    with refused("user_not_found"):
        await get.execute(a_stranger(), USER)
    assert (await all_of_them.execute(a_stranger())).items == ()
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await get.execute(a_principal(role), USER)
        with refused("role_insufficient"):
            await all_of_them.execute(a_principal(role))


@pytest.mark.requirement("P2")
async def test_people_list_their_own_sessions_and_admins_those_of_everybody(state: InMemoryState) -> None:
    mine, bobs = a_console_session(1), a_console_session(2, holder="usr_bob", began_s=1)
    state.console_sessions |= {mine.id: mine, bobs.id: bobs}
    listing = ListSessions(console_sessions=InMemoryConsoleSessionStore(state), clock=FixedClock())
    ann = a_person()
    assert [each.id for each in (await listing.execute(ann, ann.key_id)).items] == [mine.id]
    assert [each.id for each in (await listing.execute(a_principal(), None)).items] == [bobs.id, mine.id]
    assert [each.id for each in (await listing.execute(a_principal(), bobs.holder)).items] == [bobs.id]
    assert (await listing.execute(a_stranger(), None)).items == ()
    for role in roles_below(Role.ADMIN):
        for holder in (None, bobs.holder):
            with refused("role_insufficient"):
                await listing.execute(a_principal(role), holder)


@pytest.mark.requirement("P7")
async def test_users_see_who_acted_as_them_in_the_last_thirty_days(state: InMemoryState) -> None:
    old, ended, live = an_impersonation(1), an_impersonation(2, began_s=1), an_impersonation(3, began_s=2)
    ended = replace(ended, ended_at=after(5))
    state.impersonations |= {each.id: each for each in (old, ended, live)}
    clock = FixedClock()
    listing = ListImpersonations(impersonations=InMemoryImpersonationStore(state), clock=clock)
    assert await listing.execute(a_person(), USER) == (live, ended, old)
    assert await listing.execute(a_principal(), USER) == (live, ended, old)
    clock.advance(SHOWN_FOR.total_seconds() + 1)
    assert await listing.execute(a_person(), USER) == (live, ended)
    assert await listing.execute(a_stranger(), USER) == ()
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await listing.execute(a_principal(role), USER)


@pytest.mark.requirement("P2")
async def test_callers_are_offered_the_groups_to_which_they_may_give_something(state: InMemoryState) -> None:
    for name in ("finance", "legal"):
        group = OrganizationGroup(
            id=GroupId(f"grp_{name}"), organization_id=ORG, name=name, created_at=after(0), changed_at=after(0)
        )
        state.organization_groups[group.id] = group
    teams = ListTeams(memberships=InMemoryOrganizationGroupStore(state))
    member = replace(a_principal(Role.OPERATOR), teams=frozenset({"finance", "gone"}))
    assert await teams.execute(a_principal()) == ("finance", "legal")
    assert await teams.execute(member) == ("finance",), "nothing more is given to a group that is gone"
    assert await teams.execute(a_stranger()) == ()
