"""Conditions of rules: for whom and when they hold, and that what is not known fails closed."""

from datetime import UTC, datetime

import pytest

from domain.errors import ServiceError
from domain.ids import ApiKeyId, UserId
from domain.policy.acting_person import ActingPerson
from domain.policy.condition import Circumstances, Condition, Day
from domain.policy.layers import PolicyLayers
from domain.policy.rule_json import policies_from_json, policies_to_json
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from tests.builders import START

pytestmark = pytest.mark.requirement("P6")
ANN = ActingPerson(id=ApiKeyId("usr_ann"), person_id=UserId("usr_ann"), groups=frozenset({"Leads"}))
BEN = ActingPerson(id=ApiKeyId("usr_ben"), person_id=UserId("usr_ben"))
ANNS_KEY = ActingPerson(id=ApiKeyId("key_ann"), person_id=UserId("usr_ann"))
SERVICE_KEY = ActingPerson(id=ApiKeyId("key_ci"))
LEADS = Condition(people=("key_ci",), groups=("Leads",))
WORK = Condition(hours="08:00-18:00", days=(Day.MON, Day.TUE, Day.WED, Day.THU, Day.FRI), time_zone="Europe/Berlin")
NIGHT = Condition(hours="22:00-06:00", days=(Day.FRI,))


def acting(person: ActingPerson | None, owner: ActingPerson | None = None, at: datetime = START) -> Circumstances:
    return Circumstances(person=person, owner=owner, at=at)


def at(*parts: int) -> Circumstances:
    return acting(None, at=datetime(2026, *parts, tzinfo=UTC))  # type: ignore[misc, arg-type]  # month, day, hour, minute


def holds(condition: Condition, now: Circumstances, *, permits: bool) -> bool:
    return condition.unmet(now, permits=permits) is None


@pytest.mark.parametrize("permits", [True, False])
def test_a_condition_holds_for_its_people_and_members_of_its_groups(permits: bool) -> None:
    for person, is_meant in ((ANN, True), (SERVICE_KEY, True), (BEN, False)):
        assert holds(LEADS, acting(person), permits=permits) is is_meant
    assert LEADS.unmet(acting(BEN), permits=permits) == "usr_ben is not one of its people, nor in one of its groups"


def test_a_key_is_its_person_where_a_rule_restricts_and_only_itself_where_it_permits() -> None:
    for condition in (LEADS, Condition(people=("usr_ann",))):
        assert holds(condition, acting(ANNS_KEY, ANN), permits=False)
        assert not holds(condition, acting(ANNS_KEY, ANN), permits=True)


def test_who_is_not_known_is_permitted_nothing_and_restricted_by_everything() -> None:
    assert holds(LEADS, acting(None), permits=False)
    assert not holds(LEADS, acting(None), permits=True)


@pytest.mark.parametrize(
    ("condition", "now", "expected"),
    [
        (WORK, at(1, 1, 7, 0), None),
        (WORK, at(1, 1, 6, 59), "it is 07:59 in Europe/Berlin, outside 08:00-18:00"),
        (WORK, at(1, 1, 16, 59), None),
        (WORK, at(1, 1, 17, 0), "it is 18:00 in Europe/Berlin, outside 08:00-18:00"),
        (WORK, at(7, 1, 6, 0), None),
        (WORK, at(1, 3, 9, 0), "sat in Europe/Berlin is not one of its days"),
        (NIGHT, at(1, 2, 22, 0), None),
        (NIGHT, at(1, 3, 5, 59), None),
        (NIGHT, at(1, 3, 6, 0), "it is 06:00 in UTC, outside 22:00-06:00"),
        (NIGHT, at(1, 3, 23, 0), "sat in UTC is not one of its days"),
        (NIGHT, at(1, 2, 5, 0), "thu in UTC is not one of its days"),
        (Condition(days=(Day.THU,)), at(1, 1, 23, 59), None),
        (
            Condition(days=(Day.THU,), time_zone="Asia/Tokyo"),
            at(1, 1, 23, 0),
            "fri in Asia/Tokyo is not one of its days",
        ),
    ],
)
def test_hours_and_days_are_those_of_the_zone_and_nights_belong_to_the_day_on_which_they_begin(
    condition: Condition, now: Circumstances, expected: str | None
) -> None:
    assert condition.unmet(now, permits=True) == condition.unmet(now, permits=False) == expected


def test_people_and_times_must_both_hold() -> None:
    both = Condition(groups=("Leads",), hours="08:00-11:00")
    assert not holds(both, acting(ANN), permits=True)
    assert not holds(both, acting(None), permits=False), "a rule of other hours does not restrict, whoever acts"


@pytest.mark.parametrize(
    ("stated", "path"),
    [
        ({}, "when"),
        ({"time_zone": "UTC", "groups": ("a",)}, "when.time_zone"),
        ({"hours": "8-18"}, "when.hours"),
        ({"hours": "08:00-24:00"}, "when.hours"),
        ({"hours": "08:00-08:00"}, "when.hours"),
        ({"hours": ""}, "when.hours"),
        ({"hours": "0\u0663:00-18:00"}, "when.hours"),
        ({"hours": "08:00-18:00", "time_zone": "Mars/Olympus"}, "when.time_zone"),
        ({"hours": "08:00-18:00", "time_zone": "../etc/passwd"}, "when.time_zone"),
        ({"hours": "08:00-18:00", "time_zone": "Europe"}, "when.time_zone"),
        ({"days": (Day.MON, Day.MON)}, "when.days"),
        ({"people": ("ann@example.com",)}, "when.people.0"),
        ({"groups": (" ",)}, "when.groups.0"),
        ({"groups": tuple(map(str, range(101)))}, "when"),
    ],
)
def test_what_can_be_no_condition_is_refused_with_its_place(stated: dict[str, object], path: str) -> None:
    with pytest.raises(ServiceError) as error:
        Condition(**stated)  # type: ignore[arg-type]
    assert [each.path for each in error.value.violations] == [path]


def test_a_condition_without_a_decision_is_refused() -> None:
    with pytest.raises(ServiceError) as error:
        ToolRule(timeout_s=2, when=LEADS)
    assert [each.path for each in error.value.violations] == ["when"]


def test_a_rule_whose_condition_does_not_hold_does_not_exist() -> None:
    policies = ToolPolicies(
        rules=(
            ("pay*", ToolRule(decision=Verdict.DENY)),
            ("pay_bill", ToolRule(decision=Verdict.ALLOW, max_calls=2, when=LEADS)),
            ("read", ToolRule(decision=Verdict.REQUIRE_APPROVAL, when=LEADS)),
        )
    )

    def decided(person: ActingPerson | None) -> tuple[Verdict, Verdict]:
        layers = PolicyLayers(agent=policies.under(acting(person)))
        return layers.resolve("pay_bill").decision, layers.resolve("read").decision

    assert decided(ANN) == (Verdict.ALLOW, Verdict.REQUIRE_APPROVAL)
    assert decided(BEN) == (Verdict.DENY, Verdict.ALLOW)
    assert decided(None) == (Verdict.DENY, Verdict.REQUIRE_APPROVAL)
    assert policies.is_conditional
    assert policies.at_their_mildest().rules == policies.rules[:2]
    assert policies.unconditional().rules == policies.rules[:1]


def test_conditions_are_read_back_as_they_were_written() -> None:
    rules = {
        "a": {"decision": "allow", "when": {"people": ["usr_ann"], "groups": ["Leads"]}},
        "b": {"decision": "deny", "when": {"days": ["mon"], "hours": "22:00-06:00", "time_zone": "Europe/Berlin"}},
    }
    assert policies_to_json(policies_from_json(rules)) == rules  # type: ignore[arg-type]
