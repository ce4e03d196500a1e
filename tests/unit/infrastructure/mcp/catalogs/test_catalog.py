"""Lists of tools off the wire: all pages, one order, and what is set aside."""

from collections.abc import Mapping
from typing import Any

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.catalog import SkippedTool
from domain.mcp.declared_tool import MAX_DESCRIPTION, MAX_SCHEMA
from infrastructure.mcp.catalogs.catalog import MAX_LISTING, ListPage, ToolListing, read_listing

SCHEMA = {"type": "object"}


def pages(*contents: list[Any]) -> ListPage:
    async def list_page(cursor: str | None) -> Mapping[str, Any]:
        number = int(cursor or 0)
        following = {"nextCursor": str(number + 1)} if number + 1 < len(contents) else {}
        return {"tools": contents[number], **following}

    return list_page


async def listed(*tools: object) -> ToolListing:
    return await read_listing(pages(list(tools)))


@pytest.mark.requirement("B4")
async def test_pages_are_joined_and_ordered_by_name() -> None:
    listing = await read_listing(
        pages([{"name": "c", "inputSchema": SCHEMA}], [], [{"name": name, "inputSchema": SCHEMA} for name in "ba"])
    )
    assert [tool.name for tool in listing.tools] == ["a", "b", "c"]


@pytest.mark.requirement("B7")
async def test_tools_that_cannot_be_registered_are_reported_and_their_siblings_stand() -> None:
    listing = await listed(
        {"name": "fine", "inputSchema": SCHEMA},
        {"name": "fine", "inputSchema": SCHEMA, "description": "an impostor"},
        {"name": "no spaces", "inputSchema": SCHEMA},
        {"name": "array", "inputSchema": {"type": "array"}},
        {"name": "no_schema"},
        {"name": "odd_output", "inputSchema": SCHEMA, "outputSchema": "text"},
        {"inputSchema": SCHEMA},
        "rubbish",
    )
    assert [(tool.name, tool.description) for tool in listing.tools] == [("fine", "")]
    assert [skipped.name for skipped in listing.skipped] == [
        "",
        "",
        "array",
        "fine",
        "no spaces",
        "no_schema",
        "odd_output",
    ]
    assert SkippedTool(name="fine", reason="another tool of the server has this name") in listing.skipped


@pytest.mark.requirement("B7", "B13", "S5")
async def test_definitions_too_large_for_a_prompt_are_reported_and_their_siblings_stand() -> None:
    large = {"type": "object", "description": "x" * MAX_SCHEMA}
    listing = await listed(
        {"name": "fine", "inputSchema": SCHEMA, "description": "d" * MAX_DESCRIPTION},
        {"name": "description", "inputSchema": SCHEMA, "description": "d" * (MAX_DESCRIPTION + 1)},
        {"name": "input", "inputSchema": large},
        {"name": "output", "inputSchema": SCHEMA, "outputSchema": large},
    )
    assert [tool.name for tool in listing.tools] == ["fine"]
    assert [skipped.name for skipped in listing.skipped] == ["description", "input", "output"]


@pytest.mark.requirement("B7", "B13", "S5")
async def test_all_definitions_of_a_server_together_are_bounded() -> None:
    half = {"type": "object", "description": "x" * (MAX_SCHEMA // 2)}
    many = [{"name": f"t{number:04}", "inputSchema": half} for number in range(200)]
    listing = await read_listing(pages(many[:100], [*many[100:], {"name": "small", "inputSchema": SCHEMA}]))
    assert len(listing.tools) == MAX_LISTING // (MAX_SCHEMA // 2)  # 127 of `many`, and `small`
    assert "small" in [tool.name for tool in listing.tools]
    assert len(listing.tools) + len(listing.skipped) == 201


async def test_a_description_is_cleaned_and_hints_count_only_when_they_are_true() -> None:
    [tool] = (
        await listed(
            {
                "name": "t",
                "description": "Do\x1b it\n\tnow",
                "inputSchema": {"properties": {}},
                "outputSchema": SCHEMA,
                "annotations": {"readOnlyHint": True, "idempotentHint": "yes", "destructiveHint": False},
            }
        )
    ).tools
    assert tool.description == "Do it\n\tnow"
    assert tool.input_schema == {"type": "object", "properties": {}}
    assert tool.output_schema == SCHEMA
    assert (tool.read_only_hint, tool.idempotent_hint, tool.destructive_hint) == (True, False, False)


async def test_what_people_see_of_a_tool_is_kept_and_pinned_as_far_as_it_is_valid() -> None:
    icons = [
        {"src": "https://example.com/a.png", "sizes": ["48x48"], "onclick": "x"},
        {"src": "javascript:alert(1)"},
        {"src": "http://example.com/a.png"},
        {"src": "data:image/png;base64,AA=="},
        "rubbish",
    ]
    shown = {"title": "Do \x1bit", "icons": icons, "_meta": {"com.example/x": ["\x07y"]}}
    hints = {"title": "Doer", "openWorldHint": True, "readOnlyHint": True}
    plain = {"name": "t", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
    [tool] = (await listed({**plain, **shown, "annotations": hints})).tools
    assert tool.display == {
        "title": "Do it",
        "icons": [{"src": "https://example.com/a.png", "sizes": ["48x48"]}, {"src": "data:image/png;base64,AA=="}],
        "annotations": {"title": "Doer", "openWorldHint": True},
        "_meta": {"com.example/x": ["y"]},
    }
    assert tool.digest != (await listed(plain)).tools[0].digest
    wrong = {"title": 7, "icons": {}, "_meta": [], "annotations": {"openWorldHint": "yes"}}
    large = {"title": " ", "icons": [{"src": "https://" + "x" * 20_000}], "_meta": {"x": "y" * 20_000}}
    for entry in (wrong, large):
        assert (await listed({**plain, **entry})).tools[0].display == {}
    for_apps: dict[str, Any] = {"ui": {"visibility": ["app"]}}
    for_an_app: dict[str, Any] = {**plain, **large, "_meta": {"x": "y" * 20_000, **for_apps}}
    assert (await listed(for_an_app)).tools[0].display == {"_meta": for_apps}


async def test_arguments_wanted_in_headers_are_known_and_wrong_wishes_skip_the_tool() -> None:
    def schema(header: object) -> dict[str, Any]:
        return {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header}}}

    listing = await listed(
        {"name": "routed", "inputSchema": schema("Region")}, {"name": "wrong", "inputSchema": schema("a b")}
    )
    assert listing.header_maps == {"routed": {("region",): "Region"}}
    assert [skipped.name for skipped in listing.skipped] == ["wrong"]


@pytest.mark.parametrize("page", [{}, {"tools": "many"}, {"tools": [], "nextCursor": 1}])
async def test_a_list_that_is_none_is_an_invalid_reply(page: dict[str, Any]) -> None:
    async def list_page(cursor: str | None) -> Mapping[str, Any]:
        return page

    with pytest.raises(McpFailure) as raised:
        await read_listing(list_page)
    assert raised.value.kind is McpFailureKind.INVALID_REPLY


async def test_pages_that_go_round_in_circles_are_an_invalid_reply() -> None:
    async def list_page(cursor: str | None) -> Mapping[str, Any]:
        return {"tools": [], "nextCursor": {None: "a", "a": "b", "b": "a"}[cursor]}

    with pytest.raises(McpFailure) as raised:
        await read_listing(list_page)
    assert raised.value.kind is McpFailureKind.INVALID_REPLY
