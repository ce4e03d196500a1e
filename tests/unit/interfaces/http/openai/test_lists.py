"""Pages of lists in OpenAI's form, of items that are read one after the other."""

from collections.abc import AsyncGenerator

import pytest

from domain.json_value import JsonObject
from interfaces.http.openai.lists import list_page, list_view
from tests.refusals import refused

ITEMS: list[JsonObject] = [{"id": f"msg_{number}"} for number in range(5)]


async def read(*, then_fails: bool = False) -> AsyncGenerator[JsonObject, None]:
    for item in ITEMS:
        yield item
    if then_fails:
        raise AssertionError("read on after the page")


@pytest.mark.requirement("X1")
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
async def test_a_page_is_the_same_as_of_all_items_at_once(order: str, limit: int) -> None:
    for after in (None, *(str(item["id"]) for item in ITEMS)):
        expected = list_view(ITEMS, limit=limit, order=order, after=after)
        assert await list_page(read(), limit=limit, order=order, after=after) == expected


@pytest.mark.requirement("X1")
async def test_nothing_is_read_after_a_page() -> None:
    page = await list_page(read(then_fails=True), limit=2, order="asc", after="msg_0")
    assert page["last_id"] == "msg_2"
    page = await list_page(read(then_fails=True), limit=2, order="desc", after="msg_4")
    assert page["last_id"] == "msg_2"


@pytest.mark.requirement("X1")
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_after_an_item_that_is_none_is_not_found(order: str) -> None:
    with refused("item_not_found"):
        await list_page(read(), limit=2, order=order, after="msg_9")
