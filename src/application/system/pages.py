"""Pages of lists: requests and results."""

from dataclasses import dataclass
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 500
SEARCHED = 10_000
"""A search of texts reads at most the newest so many runs or threads of the organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """`limit` entries after `cursor`, the opaque `next_cursor` of the page before. Stores raise
    INVALID `cursor_invalid` for an unknown one."""

    limit: int = DEFAULT_PAGE_SIZE
    cursor: str | None = None


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[ItemT]):
    """Entries in order; `next_cursor` is None on the last page."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
