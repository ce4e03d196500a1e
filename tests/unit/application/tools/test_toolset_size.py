"""What a toolset costs as its servers grow: memory in line with the tools, and nothing per tool to
find one by name."""

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from application.tools.toolset import Toolset
from domain.json_value import JsonObject
from domain.mcp.catalog import McpToolDefinition
from domain.tools.tool import Tool
from infrastructure.mcp.catalogs.catalog import read_listing
from tests.builders import a_catalog
from tests.unit.application.tools.test_toolset_builder import Harness

SIZES = (500, 2_000, 4_000)


def listed_tool(number: int) -> dict[str, Any]:
    """A tool off the wire, as large as usual."""
    properties: JsonObject = {
        name: {"type": "string", "description": f"The {name} to look for in file {number}."}
        for name in ("path", "query", "mode")
    }
    return {
        "name": f"tool_{number}",
        "description": f"Looks into file {number} and says what there is. " * 3,
        "inputSchema": {"type": "object", "properties": properties, "required": ["path"]},
    }


async def bytes_held_with(tools: int) -> int:
    """What is held for a server of so many tools, from its listing to a run's toolset that was
    searched by name."""
    harness = Harness()
    server = harness.add("big")
    await harness.tools("big")  # what is made once, however many tools there are
    tracemalloc.start()
    try:

        async def page(cursor: str | None) -> dict[str, Any]:
            return {"tools": [listed_tool(number) for number in range(tools)]}

        listing = await read_listing(page)
        harness.state.catalogs[server.id] = a_catalog(server.id, tools=listing.tools, server_version=1)
        toolset = await harness.tools("big")
        assert len(toolset.tools) == tools
        assert toolset.find(f"mcp__big__tool_{tools - 1}") is not None
        del listing
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.requirement("B8")
async def test_memory_grows_in_line_with_the_tools() -> None:
    per_tool = {tools: await bytes_held_with(tools) / tools for tools in SIZES}
    assert max(per_tool.values()) < 1.3 * min(per_tool.values()), per_tool
    assert max(per_tool.values()) < 8 * 1024, per_tool


@pytest.mark.requirement("B8")
async def test_a_toolset_that_is_gone_holds_nothing() -> None:
    harness = Harness()
    server = harness.add("big")
    await harness.tools("big")
    tracemalloc.start()
    try:
        held = []
        for _ in range(6):
            definitions = [McpToolDefinition(name=f"t{n}", description="", input_schema={}) for n in range(500)]
            harness.state.catalogs[server.id] = a_catalog(server.id, tools=definitions)
            assert len((await harness.tools("big")).tools) == 500
            del definitions
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # The first rounds fill caches that have a bound; after that, each takes the place of the one
    # before.
    assert held[-1] < 1.05 * held[2], held


class CountedTools(tuple[Tool, ...]):
    """Tools that count how often somebody goes through them."""

    walks = 0

    def __iter__(self) -> Iterator[Tool]:
        type(self).walks += 1
        return super().__iter__()


class CountedName(str):
    """A name that counts what it is compared with."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("tools", [10, 10_000])
async def test_a_tool_is_found_by_name_without_looking_at_the_others(
    tools: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness()
    harness.add("big", *(f"tool_{number}" for number in range(tools)))
    counted = CountedTools((await harness.tools("big")).tools)
    toolset = Toolset(tools=counted)
    assert toolset.find("mcp__big__tool_0") is not None
    monkeypatch.setattr(CountedTools, "walks", 0)
    monkeypatch.setattr(CountedName, "comparisons", 0)

    names = [f"mcp__big__tool_{number}" for number in range(0, tools, max(1, tools // 10))]
    for name in names:
        found = toolset.find(CountedName(name))
        assert found is not None
        assert found.name == name
        assert toolset.policy_of(name) is toolset.policy_of(name)
    assert toolset.find(CountedName("mcp__big__nothing")) is None

    assert CountedTools.walks == 0
    # One for each that is found; the hash may share its first bits, never the whole of it.
    assert CountedName.comparisons == len(names)


class InventedName(str):
    """A name that can be watched leaving memory."""


async def test_names_that_models_invent_are_not_remembered() -> None:
    harness = Harness()
    harness.add("small", "tool")
    toolset = await harness.tools("small")
    invented = InventedName("mcp__small__invented")
    assert toolset.policy_of(invented).hidden_by is None
    gone = weakref.ref(invented)
    del invented
    gc.collect()
    assert gone() is None
