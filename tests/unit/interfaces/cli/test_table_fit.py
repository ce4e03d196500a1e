"""Tables in the width of a terminal, and times as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from interfaces.cli.moments import distance, readable_times, relative_times
from interfaces.cli.table_fit import GAP, fitted

pytestmark = pytest.mark.requirement("U4")

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
ID = "run_01hx4aaaaaaaaaaaaaaaaaaaaa"


def width_of(table: tuple[tuple[str, ...], ...]) -> int:
    return sum(max(map(len, column)) + GAP for column in zip(*table, strict=True)) - GAP


def test_the_last_columns_are_dropped_until_the_rest_fits_and_ids_stay_whole() -> None:
    table = fitted(("ID", "STATUS", "THREAD"), [(ID, "completed", f"thr_{ID[4:]}")], width=60)
    assert table.columns == ("ID", "STATUS")
    assert table.rows == ((ID, "completed"),)
    assert table.dropped == ("THREAD",)


def test_a_text_is_shortened_before_a_column_is_dropped() -> None:
    table = fitted(("ID", "INPUT", "STATUS"), [(ID, "x" * 200, "completed")], width=80)
    assert table.columns == ("ID", "INPUT", "STATUS")
    assert table.rows[0][1].endswith("…")
    assert width_of((table.columns, *table.rows)) == 80


def test_a_table_that_fits_is_left_as_it_is() -> None:
    table = fitted(("A", "B"), [("one", "two")], width=80)
    assert (table.columns, table.rows, table.dropped) == (("A", "B"), (("one", "two"),), ())


def test_the_first_column_stays_however_narrow_the_terminal() -> None:
    assert fitted(("ID", "STATUS"), [(ID, "completed")], width=10).rows == ((ID,),)


def test_a_column_without_values_is_left_out_without_a_word() -> None:
    table = fitted(("A", "B", "C"), [("one", "", "three")], width=80)
    assert (table.columns, table.dropped) == (("A", "C"), ())


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "now"), (-9, "now"), (50, "50 s ago"), (120, "2 min ago"), (7_200, "2 h ago"), (-86_400, "in 1 d"),
     (3 * 86_400, "3 d ago"), (90 * 86_400, "2025-10-04")],
)  # fmt: skip
def test_a_time_is_told_by_its_distance(seconds: int, said: str) -> None:
    assert distance(NOW - timedelta(seconds=seconds), now=NOW) == said


def test_times_within_a_text_are_replaced_and_nothing_else() -> None:
    text = "revoked 2026-01-02T11:00:00.123456Z, 2026-01-02"
    assert relative_times(text, now=NOW) == "revoked 1 h ago, 2026-01-02"
    assert readable_times(text, now=NOW) == "revoked 2026-01-02 11:00:00 UTC (1 h ago), 2026-01-02"
