"""Fits a table into the width of a terminal: shortens texts, then drops columns, and never cuts an
id."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ID = re.compile(r"[a-z]{3,4}_[0-9a-z]{6,}")
_NARROW = 12
"""A text column is shortened to this many characters before a column is dropped."""
GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """The columns that fit, with their cells, and the names of the others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    dropped: tuple[str, ...]


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> FittedTable:
    """Rules:
    - Columns stand in the order of their importance: the last one is dropped first, the first one
      stays.
    - A text is shortened, to twelve characters at least, if a column fits so. Ids and headings stay
      whole.
    - A column that has no value in any row is left out without being named.
    """
    filled = [index for index in range(len(columns)) if index == 0 or any(row[index] for row in rows)]
    kept = list(filled)
    while len(kept) > 1 and _least(kept, columns, rows) > width:
        kept.pop()
    widths = _widths(kept, columns, rows, width=width)
    return FittedTable(
        columns=tuple(columns[index] for index in kept),
        rows=tuple(tuple(_cut(row[index], limit) for index, limit in zip(kept, widths, strict=True)) for row in rows),
        dropped=tuple(columns[index] for index in filled if index not in kept),
    )


def _natural(index: int, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    return max(len(columns[index]), *(len(row[index]) for row in rows))


def _narrowest(index: int, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    texts = min(max((len(row[index]) for row in rows), default=0), _NARROW)
    ids = max((len(row[index]) for row in rows if _ID.search(row[index])), default=0)
    return max(len(columns[index]), texts, ids)


def _least(kept: Sequence[int], columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    return sum(_narrowest(index, columns, rows) + GAP for index in kept) - GAP


def _widths(kept: Sequence[int], columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> list[int]:
    """The room left over goes to the columns in their order."""
    widths = [_narrowest(index, columns, rows) for index in kept]
    spare = width - sum(widths) - GAP * (len(kept) - 1)
    for place, index in enumerate(kept):
        more = max(0, min(spare, _natural(index, columns, rows) - widths[place]))
        widths[place] += more
        spare -= more
    return widths


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit or _ID.search(text) else f"{text[: limit - 1]}…"
