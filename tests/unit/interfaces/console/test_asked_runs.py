"""What the address of the list of runs asks for."""

import pytest

from application.runs.ports import RunFilter, RunOrder
from interfaces.console.asked_runs import USUAL, AskedRuns

pytestmark = pytest.mark.requirement("U6")


def test_an_empty_address_asks_for_all_runs_newest_first_in_the_usual_columns() -> None:
    asked = AskedRuns()
    assert (asked.wanted, asked.sorted_by, asked.columns) == (RunFilter(), RunOrder.NEWEST, USUAL)
    assert (asked.query, asked.restricts, asked.searches, asked.is_bounded, asked.faults) == (
        "",
        False,
        False,
        False,
        [],
    )


def test_columns_have_their_own_order_and_stay_when_sorted() -> None:
    asked = AskedRuns(column=("created", "tokens"), status="failed")
    assert asked.columns == ("tokens", "created")
    assert asked.by("tokens") == "status=failed&order=most_tokens&column=created&column=tokens"
    assert asked.restricts
    assert not AskedRuns(column=("created",), order="oldest").restricts


def test_a_column_is_shown_or_hidden_and_the_usual_ones_are_not_named() -> None:
    assert AskedRuns(column=("agent",), tool="t").toggled("tokens") == "tool=t&column=agent&column=tokens"
    assert AskedRuns(column=("agent", "tokens")).toggled("agent") == "column=tokens"
    assert AskedRuns(column=USUAL[1:]).toggled(USUAL[0]) == ""


def test_a_column_is_sorted_by_until_it_is_asked_for_again() -> None:
    assert AskedRuns().by("cost") == "order=costliest"
    assert AskedRuns(order="costliest").by("cost") == ""
    assert AskedRuns(order="costliest").by("created") == ""
    assert AskedRuns().by("created") == "order=oldest"
    assert AskedRuns(order="oldest").by("created") == ""


@pytest.mark.parametrize(
    ("asked", "is_bounded"),
    [(AskedRuns(order="longest"), True), (AskedRuns(text="x"), True), (AskedRuns(order="oldest"), False)],
    ids=repr,
)
def test_searches_and_sums_are_of_the_newest_runs(asked: AskedRuns, *, is_bounded: bool) -> None:
    assert asked.is_bounded is is_bounded
