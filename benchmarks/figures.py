"""Figures held against budgets: rows that say met or not met by computing it, as
docs/performance.md shows them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_HEADER = ("| budget | limit | measured | |", "|---|---|---|---|")
_ROW = re.compile(
    r"^\| (?P<what>[^|]+) \| (?P<limit>[≤≥] [^|]+) \| (?P<figure>[^|]+) \| (?P<verdict>met|not met) \|$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is allowed, in `unit`: at most `limit`, or at least."""

    what: str
    limit: float
    unit: str
    at_least: bool = False

    def holds(self, figure: float) -> bool:
        """Whether it is kept. The figure as it was measured counts, not as it is shown."""
        return figure >= self.limit if self.at_least else figure <= self.limit

    def row(self, figure: float) -> str:
        """A line of the table."""
        limit = f"{'≥' if self.at_least else '≤'} {self.limit:,g} {self.unit}"
        verdict = "met" if self.holds(figure) else "not met"
        text = shown(figure)
        if self.holds(float(text.replace(",", ""))) != self.holds(figure):
            text = f"{figure:,.4f}"  # rounded it would be on the other side
        return f"| {self.what} | {limit} | {text} {self.unit} | {verdict} |"


def shown(figure: float) -> str:
    """With as many places as tell something."""
    size = abs(figure)
    if size >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if size >= 10 else f"{figure:.2f}" if size >= 0.1 else f"{figure:.3f}"


def held(*figures: tuple[Budget, float]) -> list[str]:
    """The table of budgets beside their figures, with an empty line before it."""
    return ["", *_HEADER, *(budget.row(figure) for budget, figure in figures)]


def summary(sections: Iterable[str]) -> str:
    """How many of all budgets in these sections are met, and which are not."""
    rows = [match for section in sections for match in _ROW.finditer(section)]
    if not rows:
        return "No budget was held against a figure yet."
    missed = [f"{row['what']} ({row['figure']}, budget {row['limit']})" for row in rows if row["verdict"] != "met"]
    counted = f"{len(rows) - len(missed)} of {len(rows)} budgets are met"
    return f"{counted}; not met: {'; '.join(missed)}." if missed else f"{counted}."
