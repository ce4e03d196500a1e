"""Pages of lists in requests: `?limit=&cursor=`."""

from typing import Annotated

from litestar.params import QueryParameter

from application.system.pages import MAX_PAGE_SIZE

PageLimit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE_SIZE, description="Most entries of a page.")]
PageCursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the previous page.")]
WholeLimit = Annotated[
    int | None,
    QueryParameter(ge=1, le=MAX_PAGE_SIZE, description="Most entries of a page. Default: all."),
]
