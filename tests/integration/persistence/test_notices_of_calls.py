"""Calls that wait for people, accounts and authorizations, for the webhook of an organization's
inbox: stored once, when they begin to wait."""

import json
from dataclasses import replace

import pytest

from domain.audit.event import AuditAction
from domain.ids import ApiKeyId
from domain.json_value import JsonObject
from domain.mcp.elicitation import ACCOUNT_QUESTION, Elicitation
from domain.runs.run import Run
from domain.tools.client_tool import ClientTool
from domain.webhooks.delivery import WebhookEvent
from domain.workflows.account_wait import AccountWait
from domain.workflows.execution import NodeRun
from domain.workflows.graph import Workflow
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.missing_grants import SqlMissingGrantNotices
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import (
    ORG,
    RUN,
    SERVER,
    START,
    WORKER,
    a_displayable_call,
    a_server,
    a_settled_call,
    a_tool_call,
    after,
    an_audit_event,
)
from tests.contract.run_changes import cancel, resume
from tests.contract.run_steps import asking_step, reply_step, run_number, start_and_claim
from tests.contract.stores import Stores
from tests.contract.test_calls_that_ask import COLOUR, SIGN_IN, an_answer, asking
from tests.contract.test_workflow_runs import DEFINITION, ID, WORKFLOW, a_run
from tests.integration.persistence.test_notices import with_webhook
from tests.integration.persistence.test_oauth_store import GRANT, OWNER
from tests.people_builders import USER

pytestmark = pytest.mark.requirement("U6")
ACCOUNT = Elicitation(request_id=f"1.{ACCOUNT_QUESTION}", message="Connect your account.", url="https://here/account")


async def told(stores: Stores) -> dict[str, JsonObject]:
    """The bodies of what is to be delivered, by the items they tell."""
    claimed = await stores.webhooks.claim(at=after(900), until=after(960), limit=9, per_lane=9, busy={})
    bodies: list[JsonObject] = [json.loads(each.body) for each in claimed]
    return {str(body["waiting"][0]["item"]): body for body in bodies}  # type: ignore[index, call-overload]


async def waiting(stores: Stores, run: Run, *questions: Elicitation | None) -> Run:
    """A run that waits for answers, or results of displayed calls."""
    claimed = await start_and_claim(stores, run)
    calls = [
        a_displayable_call(index) if question is None else asking(a_tool_call(index), question)
        for index, question in enumerate(questions)
    ]
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, *(replace(each, input=None) for each in calls)))
    await stores.journal.commit(claimed.lease, asking_step(claimed.run, *calls))
    return claimed.run


async def test_questions_accounts_and_client_tools_are_told_with_what_waits(stores: Stores) -> None:
    await with_webhook(stores)
    run = replace(run_number(1), requested_by=ApiKeyId(USER))
    await waiting(stores, run, COLOUR, None, ACCOUNT)
    bodies = await told(stores)
    first, shown, third = (a_tool_call(index).id for index in range(3))
    question, call = f"question:{run.id}:{first}:{COLOUR.request_id}", f"call:{run.id}:{shown}"
    account = f"question:{run.id}:{third}:{ACCOUNT.request_id}"
    assert {item: body["type"] for item, body in bodies.items()} == {
        question: WebhookEvent.SERVER_ASKED,
        call: WebhookEvent.CLIENT_TOOL_CALLED,
        account: WebhookEvent.ACCOUNT_REQUIRED,
    }
    assert bodies[call]["data"] == {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "agent_id": run.agent_id,
        "tool_call_id": shown,
        "tool": "send_email",
    }
    of_account = bodies[account]["data"]
    assert isinstance(of_account, dict)
    assert of_account["user_id"] == USER
    for text in (COLOUR.message, ACCOUNT.message, "ada@example.org"):
        assert text not in json.dumps(bodies), "texts stay here"


async def test_a_function_that_the_client_sent_is_its_own_to_answer(stores: Stores) -> None:
    await with_webhook(stores)
    await waiting(stores, replace(run_number(1), client_tools=(ClientTool(name="send_email"),)), None)
    assert await told(stores) == {}


async def test_the_next_question_of_a_call_is_told_and_what_still_waits_is_not_told_again(stores: Stores) -> None:
    await with_webhook(stores)
    run = await waiting(stores, run_number(1), COLOUR, None)
    assert len(await told(stores)) == 2
    answer = replace(an_answer(a_tool_call(0), following=SIGN_IN), action=None)
    settled = a_settled_call(a_displayable_call(1))
    await resume(stores.runs, ORG, run.id, (settled,), answers=(answer,), actor="key", at=after(5))
    again = await told(stores)
    [item] = again
    assert (item.rpartition(":")[2], again[item]["timestamp"]) == (SIGN_IN.request_id, "2026-01-01T12:00:05.000000Z")


async def test_a_run_that_is_stopped_while_it_begins_to_wait_tells_nothing(stores: Stores) -> None:
    await with_webhook(stores)
    claimed = await start_and_claim(stores)
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, a_displayable_call()))
    await cancel(stores.runs, ORG, RUN, actor="key", at=after(1))
    await stores.journal.commit(claimed.lease, asking_step(claimed.run, a_displayable_call()))
    assert await told(stores) == {}


async def test_a_node_that_needs_an_account_says_whose(stores: Stores) -> None:
    await with_webhook(stores)
    saved = Workflow(
        id=WORKFLOW, organization_id=ORG, version=1, definition=DEFINITION, created_at=START, updated_at=START
    )
    await stores.workflows.add(saved, an_audit_event(303, action=AuditAction.WORKFLOW_CREATED))
    asked = replace(a_run(), requested_by=ApiKeyId(USER))
    await stores.workflow_runs.start(asked, an_audit_event(304, action=AuditAction.WORKFLOW_RUN_STARTED))
    taken = await stores.workflow_journal.claim(ID, WORKER, lease_s=60, at=after(2))
    assert taken is not None
    wait = AccountWait(server_id=SERVER, since=START).question("Connect your account.", "https://here/account")
    node = NodeRun(node_id="ask").started(at=after(3)).waiting(due_at=after(60), asked=wait)
    await stores.workflow_journal.commit(taken.lease, replace(taken.run, nodes={"ask": node}), at=after(4))
    [(item, body)] = (await told(stores)).items()
    assert (item, body["type"]) == (f"node:{ID}:ask", WebhookEvent.ACCOUNT_REQUIRED)
    assert body["data"] == {"workflow_run_id": ID, "workflow_id": WORKFLOW, "node_id": "ask", "user_id": USER}


async def test_a_server_that_was_authorized_before_its_notice_is_stored_is_not_told(
    stores: Stores, database: Database
) -> None:
    await with_webhook(stores)
    await stores.servers.add(a_server(), an_audit_event(301, action=AuditAction.MCP_SERVER_CREATED))
    grants = SqlOAuthStore(database=database, box=SecretBox(["a key"]))
    assert await grants.save(OWNER, replace(GRANT, obtained_at=after(2)))
    notices = SqlMissingGrantNotices(database=database, wakeups=InProcessWakeups())
    await notices.add(a_server(), at=after(1))
    assert await told(stores) == {}
    await notices.add(a_server(), at=after(3))
    assert [*await told(stores)] == ["authorization:files"]


async def test_a_server_without_a_grant_is_told_once_for_each_grant_that_ended(
    stores: Stores, database: Database
) -> None:
    await with_webhook(stores)
    await stores.servers.add(a_server(), an_audit_event(301, action=AuditAction.MCP_SERVER_CREATED))
    notices = SqlMissingGrantNotices(database=database, wakeups=InProcessWakeups())
    for second in (1, 2):
        await notices.add(a_server(), at=after(second))
    bodies = await told(stores)
    assert bodies["authorization:files"]["type"] == WebhookEvent.AUTHORIZATION_REQUIRED
    assert bodies["authorization:files"]["data"] == {"mcp_server": "files"}
    grants = SqlOAuthStore(database=database, box=SecretBox(["a key"]))
    assert await grants.save(OWNER, GRANT)
    for second in (3, 4):
        await notices.add(a_server(), at=after(second))
    assert len(await told(stores)) == 1
    await stores.servers.delete(ORG, SERVER, an_audit_event(305, action=AuditAction.MCP_SERVER_DELETED))
    await notices.add(a_server(version=2), at=after(5))
    assert await told(stores) == {}
