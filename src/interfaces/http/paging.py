"""Pages of lists: `?limit=&cursor=` in, `{"data": [...], "next_cursor": …}` out."""

from collections.abc import Callable
from typing import Annotated, Generic, TypedDict, TypeVar

from litestar.params import QueryParameter

from application.system.pages import MAX_PAGE_SIZE, Page

ItemT = TypeVar("ItemT")
ViewT = TypeVar("ViewT")

PageLimit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE_SIZE, description="How many entries a page has at most.")]
PageCursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]


class PageView(TypedDict, Generic[ViewT]):
    """A page; `next_cursor` is null on the last one."""

    data: list[ViewT]
    next_cursor: str | None


def page_view(page: Page[ItemT], view: Callable[[ItemT], ViewT]) -> PageView[ViewT]:
    """A page as JSON."""
    return {"data": [view(item) for item in page.items], "next_cursor": page.next_cursor}
