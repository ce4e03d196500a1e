"""ExecuteMcpTool: what the server and the organization permit now, whatever the run was given."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.mcp.server import McpServer
from tests.builders import a_server, an_organization
from tests.unit.application.tools.test_execute_mcp_tool import Setting


@pytest.fixture
def setting(mocker: MockerFixture) -> Setting:
    return Setting(mocker)


@pytest.mark.requirement("B6")
async def test_a_tool_that_its_server_leaves_out_by_now_is_not_called(setting: Setting) -> None:
    setting.configure(tools=("read_*", "echo"))
    assert not (await setting.call()).is_error
    setting.configure(tools=("read_*",))
    result = await setting.call()
    assert (result.error_code, setting.connections.call_tool.await_count) == ("mcp_tool_unknown", 1)


@pytest.mark.requirement("B14")
async def test_a_kind_of_server_that_is_withdrawn_while_the_server_is_read_is_not_called(setting: Setting) -> None:
    async def withdrawn(*_: object) -> McpServer:
        setting.organizations.get.return_value = replace(an_organization(), mcp_kinds=())
        return a_server()

    setting.servers.get.side_effect = withdrawn
    result = await setting.call()
    assert (result.error_code, setting.connections.call_tool.await_count) == ("mcp_disabled", 0)
