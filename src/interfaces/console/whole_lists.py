"""Loads complete lists for choices, page by page."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from application.system.pages import MAX_PAGE_SIZE, Page, PageRequest

_Item = TypeVar("_Item")


async def all_of(page: Callable[[PageRequest], Awaitable[Page[_Item]]]) -> tuple[_Item, ...]:
    found: list[_Item] = []
    cursor: str | None = None
    while True:
        one = await page(PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
        found += one.items
        if (cursor := one.next_cursor) is None:
            return tuple(found)
