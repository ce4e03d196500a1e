"""CallerTeams: whose agents, servers and threads a caller sees."""

from dataclasses import replace

import pytest

from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.ids import ApiKeyId, GroupId, ImpersonationId
from tests.builders import KEY, ORG, START, a_key, after
from tests.doubles.state import InMemoryState
from tests.people_builders import PROVIDER, USER, a_provider, a_user
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import caller_teams

pytestmark = pytest.mark.requirement("P2")


@pytest.fixture
def state() -> InMemoryState:
    """Ann is an operator, and in the group of finance."""
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.users[USER] = a_user(role=Role.OPERATOR)
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="finance", members=(USER,), created_at=START, changed_at=START
    )
    state.organization_groups[group.id] = group
    return state


async def test_a_person_sees_what_their_groups_own_now(state: InMemoryState) -> None:
    ann = a_user(role=Role.OPERATOR).principal(after(60))
    told = await caller_teams(state).told(ann)
    assert told.teams == frozenset({"finance"})
    assert (told.sees("finance"), told.sees("legal"), told.sees(None)) == (True, False, True)

    state.organization_groups.clear()

    assert not (await caller_teams(state).told(told)).sees("finance")


async def test_who_manages_the_organization_and_its_own_keys_see_what_every_group_owns(state: InMemoryState) -> None:
    teams = caller_teams(state)
    assert (await teams.told(a_user(role=Role.ADMIN).principal(after(60)))).visible_teams is None
    assert (await teams.told(a_principal(Role.VIEWER))).visible_teams is None


async def test_the_key_of_a_person_sees_what_the_person_sees(state: InMemoryState) -> None:
    key = replace(a_principal(Role.VIEWER), key_of=USER)
    assert (await caller_teams(state).told(key)).teams == frozenset({"finance"})
    state.users[USER] = a_user(role=Role.ADMIN)
    assert (await caller_teams(state).told(key)).teams is None
    del state.users[USER]
    assert (await caller_teams(state).told(key)).teams == frozenset()


async def test_who_acts_as_another_user_has_none_of_their_groups(state: InMemoryState) -> None:
    acting = replace(
        a_user(role=Role.OPERATOR).principal(after(60)),
        key_id=ApiKeyId(f"impersonation:key_platform:{USER}"),
        impersonation_id=ImpersonationId("imp_1"),
    )
    assert (await caller_teams(state).told(acting)).visible_teams == frozenset()


async def test_an_actor_sees_what_they_see_as_callers(state: InMemoryState) -> None:
    teams = caller_teams(state)
    state.keys[KEY] = a_key(role=Role.OPERATOR)
    state.keys[ApiKeyId("key_anns")] = replace(a_key(ApiKeyId("key_anns"), role=Role.OPERATOR), person_id=USER)
    assert await teams.of_actor(ORG, ApiKeyId(USER)) == frozenset({"finance"})
    assert await teams.of_actor(ORG, KEY) is None
    assert await teams.of_actor(ORG, ApiKeyId("key_anns")) == frozenset({"finance"})
    for unknown in ("key_unknown", "usr_unknown", "schedule:sch_1", f"impersonation:{KEY}:{USER}"):
        assert await teams.of_actor(ORG, ApiKeyId(unknown)) == frozenset(), unknown
