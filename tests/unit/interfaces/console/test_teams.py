"""The choice of a team in forms."""

import pytest

from interfaces.console.teams import team_choices

pytestmark = pytest.mark.requirement("P2")

ORGANIZATION = ("", "the organization")


def test_the_groups_are_offered_after_the_organization() -> None:
    assert team_choices(["finance", "sales"], None) == [ORGANIZATION, ("finance", "finance"), ("sales", "sales")]


def test_the_team_that_something_has_stays_a_choice_once_its_group_is_gone_and_is_offered_once() -> None:
    assert team_choices(["sales"], "finance") == [ORGANIZATION, ("sales", "sales"), ("finance", "finance")]
    assert team_choices(["sales"], "sales") == [ORGANIZATION, ("sales", "sales")]
