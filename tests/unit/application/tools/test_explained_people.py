"""ExplainedPeople: who asks for whom, and whether the agent is there for them."""

from dataclasses import replace

import pytest

from application.tools.explained_people import ExplainedPeople
from domain.identity.api_key import Principal
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, GroupId, UserId
from tests.builders import KEY, ORG, START, a_key
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.people_builders import PROVIDER, USER, a_person, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.team_ports import caller_teams

pytestmark = pytest.mark.requirement("P6")
DAN = UserId("usr_dan")


@pytest.fixture
def state() -> InMemoryState:
    """Ann is in the group of finance and created a key; Dan is in no group."""
    state = InMemoryState()
    state.identity_providers[PROVIDER] = a_provider()
    state.users |= {USER: a_user(), DAN: a_user(DAN, subject="dan")}
    state.keys[KEY] = replace(a_key(role=Role.VIEWER), person_id=USER)
    state.organization_groups[GroupId("grp_1")] = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="finance", members=(USER,), created_at=START, changed_at=START
    )
    return state


@pytest.fixture
def people(state: InMemoryState) -> ExplainedPeople:
    return ExplainedPeople(
        identities=InMemoryIdentityStore(state), users=InMemoryUserStore(state), caller_teams=caller_teams(state)
    )


@pytest.mark.parametrize("asked", [None, ApiKeyId(USER), KEY])
async def test_everyone_asks_for_themselves_and_their_own_keys(people: ExplainedPeople, asked: ApiKeyId | None) -> None:
    caller = a_person(Role.VIEWER)
    assert await people.acting(caller, asked) == (asked or caller.key_id)


async def test_a_key_asks_for_who_created_it(people: ExplainedPeople) -> None:
    caller = Principal(organization_id=ORG, key_id=KEY, role=Role.VIEWER, key_of=USER)
    assert await people.acting(caller, ApiKeyId(USER)) == ApiKeyId(USER)


@pytest.mark.parametrize("asked", [ApiKeyId(DAN), KEY, ApiKeyId("usr_nope"), ApiKeyId("key_nope"), ApiKeyId("dan")])
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_who_cannot_read_groups_asks_for_themselves_only(
    people: ExplainedPeople, role: Role, asked: ApiKeyId
) -> None:
    with refused("role_insufficient"):
        await people.acting(a_person(role, id=UserId("usr_eve")), asked)


async def test_who_reads_groups_asks_for_any_person_of_the_organization(
    people: ExplainedPeople, state: InMemoryState
) -> None:
    for asked in (ApiKeyId(USER), KEY):
        assert await people.acting(a_principal(Role.ADMIN), asked) == asked
    for unknown, code in (
        ("usr_nope", "user_not_found"),
        ("key_nope", "api_key_not_found"),
        ("dan", "api_key_not_found"),
        ("", "api_key_not_found"),
    ):
        with refused(code):
            await people.acting(a_principal(Role.ADMIN), ApiKeyId(unknown))
    with refused("user_not_found"):
        await people.acting(a_stranger(), ApiKeyId(USER))
    state.users[DAN] = replace(state.users[DAN], status=UserStatus.REMOVED)
    with refused("user_not_found"):
        await people.acting(a_principal(Role.ADMIN), ApiKeyId(DAN))


async def test_a_schedule_is_no_person_and_everyone_asks_for_it(people: ExplainedPeople) -> None:
    schedule = ApiKeyId("schedule:sch_1")
    assert await people.acting(a_person(Role.VIEWER), schedule) == schedule
    assert await people.absence(a_person(Role.VIEWER), schedule, "finance") is None


async def test_who_is_outside_of_the_team_is_told_that_the_agent_is_not_there_for_them(people: ExplainedPeople) -> None:
    caller = a_principal(Role.ADMIN)
    assert await people.absence(caller, ApiKeyId(DAN), "finance") == (
        "Hidden: the agent belongs to the team finance, and is not there for usr_dan."
    )
    for actor, team in ((ApiKeyId(DAN), None), (ApiKeyId(USER), "finance"), (caller.key_id, "finance")):
        assert await people.absence(caller, actor, team) is None
