"""ExecuteMcpTool: calls that a remote agent works on already."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpFailure, McpFailureKind
from application.tools.call_context import ToolCallContext
from domain.ids import ToolCallId
from domain.mcp.elicitation import InputRound
from domain.tools.result import ToolResult
from domain.tools.tool import McpBinding
from tests.builders import SERVER, a_tool
from tests.unit.application.tools.test_execute_mcp_tool import SCOPE, Setting

BEGUN = InputRound(number=1, questions=(), request_state='{"task":"t"}')


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("kind", [McpFailureKind.NOT_CONNECTED, McpFailureKind.BUSY])
async def test_a_call_that_a_remote_agent_works_on_never_fails_as_one_that_was_not_sent(
    mocker: MockerFixture, kind: McpFailureKind
) -> None:
    setting = Setting(mocker)
    setting.connections.call_tool.side_effect = McpFailure(kind, "No.")

    async def called(given: InputRound | None) -> ToolResult:
        tool = a_tool(mcp=McpBinding(server_id=SERVER, server_slug="helper", tool_name="echo", continues=True))
        context = ToolCallContext(tool_call_id=ToolCallId("call_1"), scope=SCOPE, timeout_s=30.0, meta={}, input=given)
        return await setting.use_case.execute(tool, {}, context)

    first, continued = await called(None), await called(BEGUN)

    assert (first.error_code, continued.error_code) == (f"mcp_{kind.value}", "mcp_connection_lost")
    assert "do not send it again" in continued.text
