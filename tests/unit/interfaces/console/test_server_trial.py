"""A tool tried out in the console."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.audit.queries import ListAuditEvents
from application.mcp.queries import GetMcpServer, GetMcpServerTools, McpServerTools
from application.system.pages import Page
from application.system.ports import Clock
from application.tools.explain_tool import ExplainTool
from domain.identity.role import Role
from interfaces.console.routes.server_trial import ServerTrial
from tests.builders import a_catalog, a_definition, a_server
from tests.unit.application.actors import a_principal


@pytest.mark.parametrize(("visibility", "only_apps"), [(["app"], True), (["app", "model"], False)])
async def test_a_tool_that_only_apps_call_is_told_from_one_that_no_agent_has(
    mocker: MockerFixture, visibility: list[str], only_apps: bool
) -> None:
    tool = replace(a_definition("look"), display={"_meta": {"ui": {"visibility": [*visibility]}}})
    tools = mocker.create_autospec(GetMcpServerTools, instance=True)
    tools.execute.return_value = McpServerTools(server=a_server(), catalog=a_catalog(tools=(tool,)))
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=())
    trial = ServerTrial(
        get_mcp_server=mocker.create_autospec(GetMcpServer, instance=True),
        get_mcp_server_tools=tools,
        list_agents=agents,
        explain_tool=mocker.create_autospec(ExplainTool, instance=True),
        list_audit_events=mocker.create_autospec(ListAuditEvents, instance=True),
        clock=mocker.create_autospec(Clock, instance=True),
    )
    found = await trial.of(a_principal(Role.RUNNER), "files", "look", "")
    assert (found["only_apps"], found["offered"]) == (only_apps, [])
