"""ReadCircumstances: who acts, and when."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pytest_mock import MockerFixture

from application.identity.acting_people import ActingPeople
from application.identity.read_circumstances import UNKNOWN, Acting, ReadCircumstances
from domain.errors import ServiceError
from domain.identity.organization_group import OrganizationGroup
from domain.ids import ApiKeyId, GroupId
from domain.policy.acting_person import ActingPerson
from domain.policy.condition import Circumstances
from tests.builders import KEY, ORG, START, a_key, after
from tests.circumstances import circumstances
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import USER
from tests.refusals import storage_away

pytestmark = pytest.mark.requirement("P6")
ANN = ActingPerson(id=ApiKeyId(USER), person_id=USER, groups=frozenset({"Leads"}))


def a_state() -> InMemoryState:
    """Where ann is a lead, and has a key."""
    state = InMemoryState()
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=(USER,), created_at=START, changed_at=START
    )
    state.organization_groups[group.id] = group
    state.keys[KEY] = replace(a_key(KEY), person_id=USER)
    return state


async def test_a_user_has_their_groups_and_a_key_its_owner() -> None:
    reading = circumstances(a_state())
    assert await reading.of(ORG, Acting(actor=ApiKeyId(USER))) == Circumstances(person=ANN, at=START)
    key = ActingPerson(id=KEY, person_id=USER)
    assert await reading.of(ORG, Acting(actor=KEY)) == Circumstances(person=key, owner=ANN, at=START)


async def test_memberships_and_the_time_are_those_of_each_question() -> None:
    state, clock = a_state(), FixedClock()
    reading = circumstances(state, clock)
    await reading.of(ORG, Acting(actor=ApiKeyId(USER)))

    state.organization_groups.clear()
    clock.advance(60)

    now = await reading.of(ORG, Acting(actor=ApiKeyId(USER)))
    assert now == Circumstances(person=replace(ANN, groups=frozenset()), at=after(60))


@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
async def test_a_time_that_not_every_zone_can_show_is_refused(at: datetime) -> None:
    with pytest.raises(ServiceError) as refused:
        await circumstances(a_state()).of(ORG, Acting(at=at))
    assert refused.value.code == "time_invalid"


@pytest.mark.parametrize("actor", [None, ApiKeyId("schedule:sch_1"), ApiKeyId("system")])
async def test_schedules_and_the_system_are_not_known(actor: ApiKeyId | None) -> None:
    assert await circumstances(a_state()).of(ORG, Acting(actor=actor)) == Circumstances(at=START)


async def test_who_cannot_be_read_is_not_known(mocker: MockerFixture) -> None:
    people = mocker.create_autospec(ActingPeople, instance=True)
    people.named.side_effect = storage_away()
    reading = ReadCircumstances(people=people, clock=FixedClock())
    assert await reading.of(ORG, Acting(actor=KEY)) == Circumstances(at=START)


async def test_another_time_may_be_named_and_is_utc_without_a_zone() -> None:
    reading = circumstances()
    assert (await reading.of(ORG, UNKNOWN)).at == START
    said = await reading.of(ORG, Acting(at=datetime(2026, 3, 1, 9)))  # noqa: DTZ001  # what a query may have
    assert said.at == datetime(2026, 3, 1, 9, tzinfo=UTC)
