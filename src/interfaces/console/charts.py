"""Charts that the server draws: columns or lines over time, with axes, a grid and a legend.

Positions across are shares of the width (`%`), positions down are pixels: a chart is as wide as its
place, and its texts are not scaled. The style sheet sets colours by the number of the series.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

TOP, BOTTOM = 8, 128
"""Of the plot, in pixels; the labels across are below."""
MOST_SERIES = 6
"""More are summed up as the last one."""
_STEPS = (1, 2, 2.5, 5, 10)
_TICKS = 4
_GAP = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values of one thing, one for each label. None is a gap in a line."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A column, or a segment of a line (`x2`, `y2`), of the series with this number."""

    series: int
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0
    x2: float = 0.0
    y2: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`ticks` are heights with their words, `across` are places with labels and their anchors.
    `summary` says the highest value."""

    name: str
    summary: str
    columns: tuple[Mark, ...]
    segments: tuple[Mark, ...]
    points: tuple[Mark, ...]
    ticks: tuple[tuple[float, str], ...]
    across: tuple[tuple[float, str, str], ...]
    legend: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.columns or self.points)


def columns(
    name: str,
    labels: Sequence[str],
    series: Sequence[Series],
    words: Callable[[float], str],
    *,
    prefix: str = "on",
    counts: Callable[[float], str] | None = None,
) -> Chart:
    """Stacked columns, one for each label. `counts` are the words of the axis where values are
    whole numbers."""
    drawn = _joined(series)
    totals = [sum(each.values[at] or 0 for each in drawn) for at in range(len(labels))]
    most = max(totals, default=0)
    scale = _Scale(most, whole=counts is not None)
    step, marks = 100 / max(len(labels), 1), []
    for at, label in enumerate(labels):
        under = 0.0
        for number, each in enumerate(drawn):
            value = each.values[at] or 0
            if not value:
                continue
            said = f"{label}, {each.name}: {words(value)}" if len(drawn) > 1 else f"{label}: {words(value)}"
            y = scale.y(under + value)
            marks.append(
                Mark(
                    series=number,
                    x=_short(step * (at + _GAP / 2)),
                    width=_short(step * (1 - _GAP)),
                    y=y,
                    height=_short(scale.y(under) - y),
                    label=said,
                )
            )
            under += value
    highest = labels[totals.index(most)] if most else ""
    return Chart(
        name=name,
        summary=f"at most {words(most)}, {prefix} {highest}" if most else "nothing",
        columns=tuple(marks),
        segments=(),
        points=(),
        ticks=scale.ticks(counts or words),
        across=_across(labels),
        legend=tuple(each.name for each in drawn) if len(drawn) > 1 else (),
    )


def lines(name: str, labels: Sequence[str], series: Sequence[Series], words: Callable[[float], str]) -> Chart:
    """A line for each series, with a point at each value."""
    values = [value for each in series for value in each.values if value is not None]
    scale, step = _Scale(max(values, default=0)), 100 / max(len(labels), 1)
    points = [
        [
            None
            if value is None
            else Mark(
                series=number,
                x=_short(step * (at + 0.5)),
                y=scale.y(value),
                label=f"{labels[at]}, {each.name}: {words(value)}",
            )
            for at, value in enumerate(each.values)
        ]
        for number, each in enumerate(series)
    ]
    return Chart(
        name=name,
        summary=f"at most {words(max(values))}" if values else "nothing",
        columns=(),
        segments=tuple(
            Mark(series=one.series, x=one.x, y=one.y, x2=other.x, y2=other.y)
            for line in points
            for one, other in pairwise(line)
            if one is not None and other is not None
        ),
        points=tuple(point for line in points for point in line if point is not None),
        ticks=scale.ticks(words),
        across=_across(labels),
        legend=tuple(each.name for each in series),
    )


class _Scale:
    """Values up to a round number above the highest one."""

    def __init__(self, most: float, *, whole: bool = False) -> None:
        size = most / _TICKS if most > 0 else 0.25
        power = 10.0 ** floor(log10(size))
        self._step = next(step * power for step in _STEPS if step * power >= size * (1 - 1e-9))
        if whole:
            self._step = float(ceil(self._step))
        self._count = max(1, next(count for count in range(1, _TICKS + 2) if count * self._step >= most * (1 - 1e-9)))

    def y(self, value: float) -> float:
        return _short(BOTTOM - (BOTTOM - TOP) * value / (self._step * self._count))

    def ticks(self, words: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
        """From zero up."""
        return tuple((self.y(at * self._step), words(at * self._step)) for at in range(self._count + 1))


def compact(value: float) -> str:
    """A whole number in few characters: 1,200 is 1.2k."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{mark}"
    return f"{value:g}"


def _joined(series: Sequence[Series]) -> list[Series]:
    if len(series) <= MOST_SERIES:
        return list(series)
    kept, rest = series[: MOST_SERIES - 1], series[MOST_SERIES - 1 :]
    sums = tuple(sum(each.values[at] or 0 for each in rest) for at in range(len(rest[0].values)))
    return [*kept, Series(name=f"{len(rest)} others", values=sums)]


def _across(labels: Sequence[str]) -> tuple[tuple[float, str, str], ...]:
    """The first, the middle and the last label."""
    if not labels:
        return ()
    last = len(labels) - 1
    wanted = {0: (0.0, "start"), last: (100.0, "end")} if last else {0: (50.0, "middle")}
    if last > 3:
        middle = last // 2
        wanted[middle] = (_short(100 * (middle + 0.5) / len(labels)), "middle")
    return tuple((x, labels[at], anchor) for at, (x, anchor) in sorted(wanted.items()))


def _short(value: float) -> float:
    return round(value, 2)
