"""Lists in OpenAI's form."""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from domain.errors import not_found
from domain.json_value import JsonObject


def list_view(items: list[JsonObject], *, limit: int, order: str, after: str | None) -> JsonObject:
    """A page of items that are given oldest first; `after` is the id of the last item of the page
    before."""
    ordered = items if order == "asc" else items[::-1]
    ids = [item["id"] for item in ordered]
    start = ids.index(after) + 1 if after in ids else 0
    return _view(ordered[start : start + limit + 1], limit)


async def list_page(
    items: AsyncGenerator[JsonObject, None], *, limit: int, order: str, after: str | None
) -> JsonObject:
    """As `list_view`, of items that are read one after the other: no more than a page is held. In
    ascending order nothing is read after the page. Raises NOT_FOUND if `after` is none of the
    items."""
    page: deque[JsonObject] = deque(maxlen=limit + 1)
    is_found = after is None
    async with aclosing(items) as each:
        async for item in each:
            if item["id"] == after:
                is_found = True
                if order != "asc":
                    break
            elif order != "asc" or is_found:
                page.append(item)
                if order == "asc" and len(page) > limit:
                    break
    if not is_found:
        raise not_found("item", str(after))
    return _view(list(page) if order == "asc" else [*reversed(page)], limit)


def _view(found: Sequence[JsonObject], limit: int) -> JsonObject:
    """`found` has one item more than the page, if there are more."""
    page = found[:limit]
    return {
        "object": "list",
        "data": [*page],
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": len(found) > limit,
    }
