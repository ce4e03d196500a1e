"""Lists of a server that are read again and again."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from pytest_mock import MockerFixture

from application.system.turns import SLICE_S
from domain.mcp.catalog import SkippedTool
from infrastructure.mcp.catalogs.catalog import Entry, ListPage
from infrastructure.mcp.catalogs.tool_lists import ToolLists
from infrastructure.mcp.transports.value_count import MAX_VALUES
from tests.slices import rests

pytestmark = pytest.mark.requirement("S3", "B4")


def a_page(*entries: bytes) -> ListPage:
    async def list_page(_cursor: str | None) -> Mapping[str, Any]:
        return {"tools": [msgspec.Raw(entry) for entry in entries], "nextCursor": None}

    return list_page


def an_entry(name: str, description: str = "") -> bytes:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    return json.dumps({"name": name, "description": description, "inputSchema": schema}).encode()


async def test_an_entry_that_did_not_change_is_not_read_again(mocker: MockerFixture) -> None:
    lists = ToolLists()
    first = await lists.read(a_page(an_entry("a"), an_entry("b"), an_entry("c"), b"1"))
    parsed = mocker.spy(Entry, "of_text")
    again = await lists.read(a_page(an_entry("a"), an_entry("b"), an_entry("c"), b"1"))
    assert parsed.call_count == 0
    assert again == first
    assert all(one is other for one, other in zip(first.tools, again.tools, strict=True))
    changed = await lists.read(a_page(an_entry("a"), an_entry("b", "new"), an_entry("c")))
    assert parsed.call_count == 1
    assert [tool.description for tool in changed.tools] == ["", "new", ""]
    assert changed.header_maps.keys() == {"a", "b", "c"}


async def test_what_is_no_longer_listed_and_long_lists_are_not_remembered(mocker: MockerFixture) -> None:
    lists = ToolLists()
    await lists.read(a_page(an_entry("a")))
    await lists.read(a_page())
    parsed = mocker.spy(Entry, "of_text")
    await lists.read(a_page(an_entry("a")))
    assert parsed.call_count == 1
    long = [an_entry(f"tool_{number}", "x" * 16_000) for number in range(100)]
    await lists.read(a_page(*long))
    await lists.read(a_page(*long))
    assert parsed.call_count == 1 + 2 * len(long)


async def test_others_run_between_the_entries_of_a_long_list(mocker: MockerFixture) -> None:
    rest = rests(mocker, (number * SLICE_S * 2 for number in range(1_000)))
    await ToolLists().read(a_page(*(an_entry(f"tool_{number}") for number in range(50))))
    assert rest.await_count == 50


async def test_entries_that_strict_parsers_reject_are_read_and_those_of_too_many_values_are_not() -> None:
    odd = b'{"name": "odd", "description": "a\\ud800\xff", "inputSchema": {}}'
    large = b'{"name": "large", "inputSchema": {"enum": [' + b"0," * MAX_VALUES + b"0]}}"
    listing = await ToolLists().read(a_page(odd, large, b"{"))
    [tool] = listing.tools
    assert (tool.name, tool.description) == ("odd", "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}")
    assert listing.skipped == (
        SkippedTool(name="", reason="it has more than 50,000 values"),
        SkippedTool(name="", reason="it has no name"),
    )
