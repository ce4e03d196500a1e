"""The `tools` of a server's settings: only these are in toolsets."""

from dataclasses import replace

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from tests.unit.application.tools.test_toolset_builder import Harness, names


@pytest.mark.requirement("B5")
async def test_tools_that_the_settings_do_not_name_are_out_of_toolsets_at_once() -> None:
    harness = Harness()
    server = harness.add("s", "get_one", "get_two", "put")
    harness.state.servers[server.id] = replace(server, version=2, config=replace(server.config, tools=("get_*",)))
    assert names(await harness.tools("s")) == ["mcp__s__get_one", "mcp__s__get_two"]
    harness.state.servers[server.id] = replace(server, version=3, config=replace(server.config, tools=("put",)))
    harness.connections.servers["s"].unreachable = McpFailure(McpFailureKind.TIMEOUT, "No answer.")
    assert names(await harness.tools("s")) == []
    harness.state.servers[server.id] = replace(server, version=4, config=replace(server.config, tools=()))
    assert names(await harness.tools("s")) == []
