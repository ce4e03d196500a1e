"""Reading lists to their end, page by page."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from application.system.pages import Page, PageRequest

ItemT = TypeVar("ItemT")


async def pages_of(fetch: Callable[[PageRequest], Awaitable[Page[ItemT]]], *, limit: int) -> list[tuple[ItemT, ...]]:
    """All pages, following the cursors."""
    page = await fetch(PageRequest(limit=limit))
    pages = [page.items]
    while page.next_cursor is not None:
        assert len(pages) < 100, "the cursors lead nowhere"
        page = await fetch(PageRequest(limit=limit, cursor=page.next_cursor))
        pages.append(page.items)
    return pages


async def all_of(fetch: Callable[[PageRequest], Awaitable[Page[ItemT]]]) -> tuple[ItemT, ...]:
    """Everything on the list, which must fit on one page."""
    page = await fetch(PageRequest(limit=500))
    assert page.next_cursor is None
    return page.items
