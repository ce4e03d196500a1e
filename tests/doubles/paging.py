"""Pages over sorted lists in memory, by key rather than by position, so that inserts do not shift
them."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from application.system.pages import Page, PageRequest
from domain.errors import Violation, invalid
from domain.threads.message_json import timestamp

ItemT = TypeVar("ItemT")

SortKey = tuple[str, str]


def by_time(moment: datetime, identifier: str) -> SortKey:
    """The sort key of things listed by time; the id decides between equal times."""
    return (timestamp(moment), identifier)


def newest_first(items: Iterable[ItemT], key: Callable[[ItemT], SortKey], request: PageRequest) -> Page[ItemT]:
    """The entries below the cursor, by falling key. Raises INVALID `cursor_invalid`."""
    after = _decoded(request.cursor)
    rest = sorted((item for item in items if after is None or key(item) < after), key=key, reverse=True)
    return _cut(rest, key, request.limit)


def oldest_first(items: Iterable[ItemT], key: Callable[[ItemT], SortKey], request: PageRequest) -> Page[ItemT]:
    """The entries above the cursor, by rising key. Raises INVALID `cursor_invalid`."""
    after = _decoded(request.cursor)
    rest = sorted((item for item in items if after is None or key(item) > after), key=key)
    return _cut(rest, key, request.limit)


def _cut(rest: list[ItemT], key: Callable[[ItemT], SortKey], limit: int) -> Page[ItemT]:
    items = tuple(rest[:limit])
    more = len(rest) > limit
    return Page(items=items, next_cursor=_encoded(key(items[-1])) if more else None)


def _encoded(key: SortKey) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _decoded(cursor: str | None) -> SortKey | None:
    if cursor is None:
        return None
    try:
        match json.loads(base64.urlsafe_b64decode(cursor.encode())):
            case [str() as first, str() as second]:
                return (first, second)
            case _:
                pass
    except (binascii.Error, ValueError):
        pass
    raise invalid(
        "cursor_invalid",
        "The cursor is not from this list.",
        Violation(path="cursor", message="must be the next_cursor of the page before"),
    )
