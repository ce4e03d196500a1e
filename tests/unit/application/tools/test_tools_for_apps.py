"""Tools that a server offers to its apps only: a model has none of them, and policy holds for
them."""

from dataclasses import replace

import pytest

from tests.builders import a_catalog, a_definition
from tests.unit.application.tools.test_toolset_builder import Harness, names


@pytest.mark.requirement("X6")
async def test_a_tool_for_apps_only_is_no_tool_of_a_model() -> None:
    harness = Harness()
    for_apps = replace(a_definition("refresh"), display={"_meta": {"ui": {"visibility": ["app"]}}})
    server = harness.add("a", "one")
    harness.state.catalogs[server.id] = a_catalog(server.id, tools=[a_definition("one"), for_apps])
    toolset = await harness.tools("a")
    assert names(toolset) == [tool.name for tool in toolset.servers[0].tools] == ["mcp__a__one"]
    assert toolset.find("mcp__a__refresh") is None
    assert names(toolset.with_app_tools) == ["mcp__a__one", "mcp__a__refresh"]
    assert names((await harness.tools("a", allowlist=("mcp__a__one",))).with_app_tools) == ["mcp__a__one"]
