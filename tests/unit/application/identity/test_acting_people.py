"""ActingPeople: who is behind a caller and a starter, and their groups."""

from dataclasses import replace

import pytest

from application.identity.acting_people import ActingPeople
from domain.identity.organization_group import OrganizationGroup
from domain.ids import ApiKeyId, GroupId
from domain.policy.acting_person import ActingPerson
from tests.builders import KEY, ORG, OTHER_ORG, START, a_key
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.state import InMemoryState
from tests.people_builders import SUPPORT, USER, a_user, an_impersonation
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P2")
GROUP = OrganizationGroup(
    id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=(USER,), created_at=START, changed_at=START
)


async def test_a_user_acts_with_their_groups_and_a_key_for_who_created_it_with_none() -> None:
    state = InMemoryState()
    state.organization_groups[GROUP.id] = GROUP
    state.keys[KEY] = replace(a_key(KEY), person_id=USER)
    people = ActingPeople(memberships=InMemoryOrganizationGroupStore(state), identities=InMemoryIdentityStore(state))
    ann = ActingPerson(id=ApiKeyId(USER), person_id=USER, groups=frozenset({"Leads"}))
    anns_key = ActingPerson(id=KEY, person_id=USER)

    assert await people.calling(a_user().principal(START)) == ann
    assert await people.calling(replace(a_principal(), key_id=KEY, key_of=USER)) == anns_key
    assert await people.named(ORG, ApiKeyId(USER)) == ann
    assert await people.named(ORG, KEY) == anns_key
    assert await people.named(OTHER_ORG, ApiKeyId(USER)) == replace(ann, groups=frozenset())
    for nobody in (ApiKeyId("key_unknown"), ApiKeyId("schedule:sch_1")):
        assert await people.named(ORG, nobody) == ActingPerson(id=nobody)
    assert await people.starters(ORG, [ApiKeyId(USER), KEY, ApiKeyId("schedule:sch_1")]) == {
        USER: replace(ann, groups=frozenset()),
        KEY: anns_key,
        "schedule:sch_1": ActingPerson(id=ApiKeyId("schedule:sch_1")),
    }
    assert ann.is_same_person(anns_key)
    assert not ann.is_same_person(ActingPerson(id=ApiKeyId("key_unknown")))


@pytest.mark.requirement("P7")
async def test_who_acts_as_another_user_started_what_they_start_and_has_no_groups_of_the_user() -> None:
    state = InMemoryState()
    state.organization_groups[GROUP.id] = GROUP
    people = ActingPeople(memberships=InMemoryOrganizationGroupStore(state), identities=InMemoryIdentityStore(state))
    acting = an_impersonation().acting
    supporter = ActingPerson(id=ApiKeyId(SUPPORT), person_id=SUPPORT)
    assert await people.starters(ORG, [acting]) == {acting: supporter}
    assert (await people.named(ORG, acting)).groups == frozenset()
