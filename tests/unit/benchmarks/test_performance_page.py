"""docs/performance.md as `make bench` writes it: verdicts are computed, parts that fail leave what
there was, people's text stays."""

from collections.abc import Iterable

import pytest

from benchmarks.__main__ import PARTS, TITLES, Part, PartFailed, in_process_of_its_own, measured
from benchmarks.figures import Budget, held, summary
from benchmarks.page import FILE, document, section

FORMER = (
    "# Performance\n\nOld head.\n\n## Start\n\nslow\n\n## Queue\n\nlong\n\n## Why\n\nBecause.\n\n### In detail\n\nSo.\n"
)
NAMES = {"starting": "Start", "queue": "Queue", "growth": "Growth"}
AT_MOST = Budget(what="an iteration", limit=2, unit="ms")
AT_LEAST = Budget(what="calls", limit=2_500, unit="calls/s", at_least=True)


@pytest.mark.parametrize(
    ("budget", "figure", "row"),
    [
        (AT_MOST, 1.999, "| an iteration | ≤ 2 ms | 2.00 ms | met |"),
        (AT_MOST, 2.0, "| an iteration | ≤ 2 ms | 2.00 ms | met |"),
        (AT_MOST, 2.004, "| an iteration | ≤ 2 ms | 2.0040 ms | not met |"),
        (AT_LEAST, 2_500.4, "| calls | ≥ 2,500 calls/s | 2,500 calls/s | met |"),
        (AT_LEAST, 2_499.9, "| calls | ≥ 2,500 calls/s | 2,499.9000 calls/s | not met |"),
        (AT_LEAST, 2_051, "| calls | ≥ 2,500 calls/s | 2,051 calls/s | not met |"),
    ],
)
def test_whether_a_budget_is_met_is_computed_and_never_hidden_by_rounding(
    budget: Budget, figure: float, row: str
) -> None:
    assert budget.row(figure) == row


def test_the_head_counts_the_budgets_of_all_sections_and_names_those_that_are_missed() -> None:
    sections = ["\n".join(held((AT_MOST, 1.5), (AT_LEAST, 2_051))), "\n".join(held((AT_MOST, 0.5)))]
    assert summary(sections) == "2 of 3 budgets are met; not met: calls (2,051 calls/s, budget ≥ 2,500 calls/s)."


def test_a_measured_part_replaces_its_section_and_leaves_the_others_and_what_people_wrote() -> None:
    page = document(NAMES, {"starting": section("Start", "About.", ["fast"], took_s=1)}, FORMER)
    assert "fast" in page
    assert "slow" not in page
    assert "Old head." not in page
    assert "## Queue\n\nlong\n" in page
    assert page.endswith("## Why\n\nBecause.\n\n### In detail\n\nSo.\n")


def test_writing_the_page_again_without_figures_changes_nothing() -> None:
    once = document(NAMES, {}, FORMER)
    assert document(NAMES, {}, once) == once


def test_a_part_that_fails_is_reported_and_loses_nothing_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[dict[str, str]] = []

    def measure(part: Part) -> Iterable[str]:
        if part.name == "runs":
            raise PartFailed("ended with exit status 1")
        return [f"figures of {part.name}"]

    failed = measured(PARTS[:3], lambda sections: kept.append(dict(sections)), measure)
    assert failed == {"runs": "ended with exit status 1"}
    assert [list(sections) for sections in kept] == [["starting"], ["starting", "runs-on-postgresql"]]
    assert "figures of runs-on-postgresql" in capsys.readouterr().out


def test_a_part_that_ends_badly_in_its_process_has_failed() -> None:
    """The name of no part: its process ends with the exit status of wrong usage."""
    unknown = Part(name="none", title="None", about="", measure=list)
    with pytest.raises(PartFailed, match="exit status 2"):
        in_process_of_its_own(unknown)


def test_the_page_has_a_section_for_each_part() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert [title for title in TITLES.values() if f"\n## {title}\n" not in text] == []
