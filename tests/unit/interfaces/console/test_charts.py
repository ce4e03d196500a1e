"""Charts with axes: where columns and lines are, what their scale says, and what is summed up."""

from itertools import pairwise

import pytest

from interfaces.console.charts import BOTTOM, MOST_SERIES, TOP, Series, columns, compact, lines

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def words(value: float) -> str:
    return f"{value:g} USD"


def test_columns_stand_on_each_other_below_a_round_height() -> None:
    series = [Series(name="one", values=(1.0, 2.0, 0, 0, 0)), Series(name="two", values=(0, 1.0, 0, 0, 0))]
    chart = columns("Cost", DAYS, series, words)
    assert [(mark.series, mark.label) for mark in chart.columns] == [
        (0, "Monday, one: 1 USD"),
        (0, "Tuesday, one: 2 USD"),
        (1, "Tuesday, two: 1 USD"),
    ]
    low, high = chart.columns[1], chart.columns[2]
    assert high.y + high.height == pytest.approx(low.y)
    assert low.y + low.height == BOTTOM
    assert high.y >= TOP
    assert chart.summary == "at most 3 USD, on Tuesday"
    assert [label for _, label, _ in chart.across] == ["Monday", "Wednesday", "Friday"]
    assert chart.legend == ("one", "two")


@pytest.mark.parametrize(
    ("most", "whole", "expected"),
    [
        (9.0, True, ["0", "3", "6", "9"]),
        (1.0, True, ["0", "1"]),
        (12000.0, True, ["0", "5k", "10k", "15k"]),
        (0.003, False, ["0", "0.001", "0.002", "0.003"]),
    ],
)
def test_the_scale_has_round_steps_and_whole_ones_for_counts(most: float, whole: bool, expected: list[str]) -> None:
    axis = compact if whole else None
    chart = columns("Runs", ("now",), [Series(name="runs", values=(most,))], lambda value: f"{value:g}", counts=axis)
    assert [label for _, label in chart.ticks] == expected
    heights = [y for y, _ in chart.ticks]
    assert all(above < below for below, above in pairwise(heights))


def test_lines_have_gaps_where_nothing_was_measured() -> None:
    chart = lines("Duration", DAYS, [Series(name="median", values=(1.0, 2.0, None, 3.0, None))], words)
    assert [point.label for point in chart.points] == [
        "Monday, median: 1 USD",
        "Tuesday, median: 2 USD",
        "Thursday, median: 3 USD",
    ]
    assert len(chart.segments) == 1


def test_many_series_are_summed_up_and_nothing_is_an_empty_chart() -> None:
    many = [Series(name=str(number), values=(1.0,)) for number in range(MOST_SERIES + 3)]
    assert columns("Cost", ("now",), many, words).legend[-1] == "4 others"
    empty = columns("Cost", ("now",), [Series(name="none", values=(0.0,))], words)
    assert (empty.is_empty, empty.summary) == (True, "nothing")
    assert lines("Duration", (), [], words).is_empty
