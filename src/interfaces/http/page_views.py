"""Pages of lists in responses: `{"data": [...], "next_cursor": …}`."""

from collections.abc import Callable, Sequence
from typing import Generic, TypedDict, TypeVar

from application.system.pages import Page
from domain.errors import Violation, invalid

ItemT = TypeVar("ItemT")
ViewT = TypeVar("ViewT")

_MAX_DIGITS = 9
"""Most digits of a position in a list that is loaded completely."""


class PageView(TypedDict, Generic[ViewT]):
    """A page; `next_cursor` is null on the last one."""

    data: list[ViewT]
    next_cursor: str | None


def page_view(page: Page[ItemT], view: Callable[[ItemT], ViewT]) -> PageView[ViewT]:
    return {"data": [view(item) for item in page.items], "next_cursor": page.next_cursor}


def cut(data: Sequence[ViewT], limit: int | None, cursor: str | None) -> PageView[ViewT]:
    """A page of a list that is loaded completely. Raises INVALID `cursor_invalid`."""
    begin = 0 if cursor is None else _place(cursor)
    end = len(data) if limit is None else begin + limit
    return {"data": list(data[begin:end]), "next_cursor": str(end) if end < len(data) else None}


def _place(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _MAX_DIGITS):
        wrong = Violation(path="cursor", message="is not the `next_cursor` of a page of this list")
        raise invalid("cursor_invalid", "The cursor is not valid.", wrong)
    return int(cursor)
