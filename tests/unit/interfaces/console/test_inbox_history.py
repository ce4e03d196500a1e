"""The history of the inbox tells what people decided from what the service did by itself."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.name_agents import NameAgents
from application.approvals.queries import GetApproval, ListApprovals
from application.audit.queries import ListAuditEvents
from application.system.pages import Page
from application.workflows.run_queries import GetWorkflowRun
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.ids import McpServerId
from interfaces.console.inbox_history import AskedHistory, InboxHistory
from interfaces.console.run_starters import RunStarters
from tests.builders import an_audit_event
from tests.people_builders import USER
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


async def test_a_run_that_the_service_continued_with_an_account_was_answered_by_no_one(mocker: MockerFixture) -> None:
    answered = replace(
        an_audit_event(action=AuditAction.WORKFLOW_RUN_RESUMED),
        actor=USER,
        resource="wfr_1",
        details={"nodes": ["find"]},
    )
    events = mocker.create_autospec(ListAuditEvents, instance=True)
    events.execute.return_value = Page(items=(answered, replace(answered, server_id=McpServerId("mcp_1"))))
    runs = mocker.create_autospec(GetWorkflowRun, instance=True)
    runs.execute.side_effect = not_found("workflow run", "wfr_1")
    starters = mocker.create_autospec(RunStarters, instance=True)
    history = InboxHistory(
        list_audit_events=events,
        get_approval=mocker.create_autospec(GetApproval, instance=True),
        list_approvals=mocker.create_autospec(ListApprovals, instance=True),
        get_workflow_run=runs,
        name_agents=mocker.create_autospec(NameAgents, instance=True),
        run_starters=starters,
    )

    shown = await history.page(a_principal(), AskedHistory(kind="", since="", until=""), None)

    decided = shown["decided"]
    assert isinstance(decided, list)
    assert [(each.decision, each.by) for each in decided] == [("answered", USER), ("continued with an account", None)]
