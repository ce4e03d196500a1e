"""What cannot be a tool of a workflow run, and why: servers that do not answer, and what belongs to
another team."""

from dataclasses import replace

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from application.workflows.node_execution import NodeFailed, Succeeded
from domain.json_value import JsonObject
from tests.builders import an_agent
from tests.doubles.mcp_connections import text_reply
from tests.unit.application.workflows.test_mcp_step import Desk
from tests.unit.application.workflows.test_tool_step import Harness, harness
from tests.workflow_builders import node

__all__ = ["harness"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"server": "nowhere"}, "mcp_server_not_found"),
        ({"server": "files", "tools": ["read", "burn"]}, "mcp_tool_not_found"),
        ({"server": "silent"}, "mcp_server_unavailable"),
        ({"server": "off"}, "mcp_server_disabled"),
    ],
)
@pytest.mark.requirement("F2")
async def test_a_server_that_cannot_be_a_tool_says_why(harness: Harness, settings: JsonObject, code: str) -> None:
    await harness.server("files", "read")
    await harness.server("silent", unreachable=McpFailure(McpFailureKind.NOT_CONNECTED, "It does not start."))
    await harness.server("off", enabled=False)
    with pytest.raises(NodeFailed) as failed:
        await harness.register(node("tool", "mcp_server", "tool", **settings))
    assert (failed.value.error.code, str(settings["server"]) in failed.value.error.detail) == (code, True)


def give(harness: Harness, slug: str, team: str | None) -> None:
    """The server to a team."""
    for key, server in harness.state.servers.items():
        if server.config.slug == slug:
            harness.state.servers[key] = replace(server, config=replace(server.config, team=team))


@pytest.mark.requirement("P2")
async def test_a_server_of_the_workflows_team_is_a_tool_of_its_runs_only(harness: Harness) -> None:
    await harness.server("files", "search")
    give(harness, "files", "finance")
    files = node("files", "mcp_server", "tool", server="files")
    for team in (None, "legal"):
        with pytest.raises(NodeFailed) as failed:
            await harness.register(files, team=team)
        assert failed.value.error.code == "mcp_server_not_found"

    await harness.register(files, team="finance")

    # The agent belongs to the organization, and has the server in this run.
    assert [shown.name for shown in (await harness.seen("files")).shown] == ["mcp__files__search"]
    give(harness, "files", "legal")
    assert (await harness.seen("files")).shown == ()


@pytest.mark.requirement("P2")
async def test_an_agent_of_another_team_is_no_tool(harness: Harness) -> None:
    theirs = an_agent(name="scout")
    harness.state.agents[theirs.id] = [replace(theirs, config=replace(theirs.config, team="finance"))]
    helper = node("helper", "agent", "tool", agent="scout")
    for team in (None, "legal"):
        with pytest.raises(NodeFailed) as failed:
            await harness.register(helper, team=team)
        assert failed.value.error.code == "agent_not_found"
    await harness.register(helper, team="finance")


@pytest.mark.requirement("P2")
async def test_a_server_of_a_team_is_called_by_runs_of_this_team_only() -> None:
    desk = await Desk().answering(text_reply("found"))
    give(desk.harness, "files", "finance")
    for team in (None, "legal"):
        with pytest.raises(NodeFailed) as failed:
            await desk.step_beside({}, team=team)
        assert failed.value.error.code == "mcp_server_unavailable"
    assert desk.harness.connections.calls == []
    assert isinstance(await desk.step_beside({}, team="finance"), Succeeded)
