"""The inbox reads the large catalogs of those servers only in which a tool waits."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.approvals.queries import GetApproval, ListApprovals
from application.mcp.queries import (
    CountQuarantinedTools,
    GetMcpServerStatus,
    GetMcpServerTools,
    ListMcpServers,
    McpServerTools,
)
from application.runs.queries import GetRun, ListRuns
from application.system.pages import Page
from application.threads.queries import ListQuarantinedThreads
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns
from domain.identity.role import Role
from domain.ids import McpServerId
from interfaces.console.inbox import Inbox
from tests.builders import START, a_catalog, a_definition, a_server, numbered
from tests.doubles.surroundings import StepClock
from tests.unit.application.actors import a_principal


@pytest.mark.requirement("U6")
async def test_a_count_reads_the_catalog_of_a_server_with_a_waiting_tool_alone(mocker: MockerFixture) -> None:
    servers = [a_server(McpServerId(numbered("mcp", number)), slug=f"of-{number}") for number in range(1, 101)]
    off = a_server(McpServerId(numbered("mcp", 200)), slug="off")
    off = replace(off, config=replace(off.config, enabled=False))
    catalog = replace(a_catalog(tools=(a_definition("new"), a_definition("old"))), quarantined={"new": None})
    nothing: Page[object] = Page(items=())
    lists = [mocker.create_autospec(kind, instance=True) for kind in (ListApprovals, ListRuns, ListWorkflowRuns)]
    for each in lists:
        each.execute.return_value = nothing
    threads = mocker.create_autospec(ListQuarantinedThreads, instance=True)
    threads.execute.return_value = ()
    listed = mocker.create_autospec(ListMcpServers, instance=True)
    listed.execute.return_value = Page(items=(*servers, off))
    counts = mocker.create_autospec(CountQuarantinedTools, instance=True)
    counts.execute.return_value = {servers[3].id: 1, off.id: 1}
    tools = mocker.create_autospec(GetMcpServerTools, instance=True)
    tools.execute.return_value = McpServerTools(server=servers[3], catalog=catalog)
    inbox = Inbox(
        list_approvals=lists[0],
        get_approval=mocker.create_autospec(GetApproval, instance=True),
        list_runs=lists[1],
        get_run=mocker.create_autospec(GetRun, instance=True),
        list_workflow_runs=lists[2],
        get_workflow_run=mocker.create_autospec(GetWorkflowRun, instance=True),
        list_mcp_servers=listed,
        get_mcp_server_status=mocker.create_autospec(GetMcpServerStatus, instance=True),
        get_mcp_server_tools=tools,
        count_quarantined_tools=counts,
        list_quarantined_threads=threads,
        clock=StepClock(START),
    )
    principal = a_principal(Role.VIEWER)
    assert (await inbox.waiting(principal, recent=False)).count == 1
    tools.execute.assert_awaited_once_with(principal, servers[3].id)
