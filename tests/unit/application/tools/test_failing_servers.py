"""What the log says of servers that do not answer when a toolset is built."""

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from tests.unit.application.tools.test_toolset_builder import Harness, names


@pytest.mark.requirement("B5")
async def test_a_server_that_does_not_answer_is_logged_once_for_each_of_its_versions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = Harness()
    for version in (1, 2):
        harness.add("dead", "tool", listed=False, version=version)
        harness.connections.servers["dead"].unreachable = McpFailure(McpFailureKind.TIMEOUT, "No answer.")
        for _ in range(3):
            assert names(await harness.tools("dead")) == []
        lines = [record for record in caplog.records if record.getMessage() == "MCP server unavailable at run start"]
        assert len(lines) == version
