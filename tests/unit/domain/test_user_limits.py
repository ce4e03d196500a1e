"""Limits of users: whose hold for one user, and what is none."""

from dataclasses import replace

import pytest

from domain.errors import ServiceError
from domain.identity.organization import Organization
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId, UserId
from domain.rate_limit import RateLimit
from tests.builders import ORG, START
from tests.people_builders import USER

pytestmark = pytest.mark.requirement("P2")
RATE = RateLimit(calls=60, per_s=60)


def organization(each: UserLimits = UserLimits(), **named: UserLimits) -> Organization:  # noqa: B008  # an immutable value
    return Organization(id=ORG, name="Acme", created_at=START, user_limits=each, limits_of_users=named)


def test_a_users_limits_replace_those_of_all_users_one_by_one() -> None:
    found = organization(UserLimits(rate_limit=RATE, max_active_runs=2), **{USER: UserLimits(max_active_runs=9)})
    assert found.limits_of(USER) == UserLimits(rate_limit=RATE, max_active_runs=9)
    assert found.limits_of(UserId("usr_2")) == UserLimits(rate_limit=RATE, max_active_runs=2)
    assert organization().limits_of(USER) == UserLimits()


@pytest.mark.parametrize("most", [0, -1, 100_001])
def test_a_number_of_runs_is_one_to_a_hundred_thousand(most: int) -> None:
    wrong = UserLimits(max_active_runs=most)
    for each, named in ((wrong, {}), (UserLimits(), {str(USER): wrong})):
        with pytest.raises(ServiceError) as refused:
            organization(each, **named)
        assert refused.value.code == "organization_invalid"


def test_limits_are_those_of_users_and_of_no_more_than_a_thousand() -> None:
    many = {f"usr_{number}": UserLimits() for number in range(1_001)}
    for named in ({"key_1": UserLimits()}, many):
        with pytest.raises(ServiceError) as refused:
            organization(**named)
        assert [each.path.split(".")[0] for each in refused.value.violations] == ["limits_of_users"]


def test_keys_count_for_who_made_them_only_where_the_organization_says_so() -> None:
    bob = UserId("usr_bob")
    without = organization()
    counting = replace(without, keys_count_for_users=True)
    for starter, key_of, behind in (
        ("key_1", bob, (None, bob)),
        ("key_1", None, (None, None)),
        (USER, None, (USER, USER)),
        (f"impersonation:{USER}:{bob}", None, (USER, USER)),
        ("schedule:sch_1", None, (None, None)),
    ):
        assert tuple(each.user_behind(ApiKeyId(starter), key_of) for each in (without, counting)) == behind
