"""What waits for people, for the webhook of an organization's inbox: stored with what began to
wait, and removed with it."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from application.system.pages import PageRequest
from application.webhooks.notices import of_approvals
from application.webhooks.ports import DeliveryFilter
from domain.audit.event import AuditAction
from domain.json_value import JsonObject
from domain.runs.run import RunStatus
from domain.runs.turn_end import turn_end
from domain.webhooks.delivery import WebhookDelivery, WebhookEvent
from domain.workflows.execution import NodeRun
from domain.workflows.graph import Workflow
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import webhook_delivery
from infrastructure.persistence.webhooks.notice_rows import add_notices
from tests.approval_builders import awaiting_approval_call
from tests.builders import (
    ORG,
    OTHER_ORG,
    RUN,
    SERVER,
    START,
    THREAD,
    WORKER,
    a_catalog,
    a_server,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_audit_event,
)
from tests.contract.run_steps import finish_step, reply_step, run_number, start_and_claim
from tests.contract.stores import Stores
from tests.contract.test_canaries import QUARANTINE
from tests.contract.test_workflow_runs import DEFINITION, ID, WORKFLOW, a_run
from tests.gateway_builders import a_gateway_approval

pytestmark = pytest.mark.requirement("U6")
SECRET = "CHAT_HOOK"


async def with_webhook(stores: Stores) -> None:
    organization = await stores.organizations.get(ORG)
    assert organization is not None
    changed = replace(organization, inbox_webhook_secret=SECRET, version=organization.version + 1)
    audit = an_audit_event(300, action=AuditAction.ORGANIZATION_UPDATED)
    await stores.organizations.save(changed, expected_version=organization.version, audit=(audit,))


async def ask_for_approval(stores: Stores) -> None:
    thread_id = a_thread_id(11)
    await stores.threads.add(a_thread(thread_id))
    claimed = await start_and_claim(stores, run_number(2, thread_id=thread_id))
    call = awaiting_approval_call(replace(a_tool_call(0), run_id=claimed.run.id))
    replied = reply_step(claimed.run, call)
    await stores.journal.commit(claimed.lease, replied)
    end = turn_end(replied.run, (call,), list(replied.messages), at=START)
    assert end is not None
    await stores.journal.commit(claimed.lease, end)


async def halt(stores: Stores) -> None:
    claimed = await start_and_claim(stores)
    halted = replace(finish_step(claimed.run, RunStatus.HALTED), quarantine=QUARANTINE)
    await stores.journal.commit(claimed.lease, halted)


async def put_a_tool_in_quarantine(stores: Stores) -> None:
    await stores.servers.add(a_server(), an_audit_event(301, action=AuditAction.MCP_SERVER_CREATED))
    found = an_audit_event(302, action=AuditAction.MCP_SERVER_TOOL_QUARANTINED, resource=SERVER)
    details: JsonObject = {"slug": "files", "name": "read", "change": "new"}
    audit = replace(found, tool="mcp__files__read", server_id=SERVER, details=details)
    assert await stores.catalogs.save(ORG, a_catalog(), audit=(audit,))


async def ask_a_person(stores: Stores) -> None:
    """A workflow begins to wait for an answer, and is stored once more as it is."""
    saved = Workflow(
        id=WORKFLOW, organization_id=ORG, version=1, definition=DEFINITION, created_at=START, updated_at=START
    )
    await stores.workflows.add(saved, an_audit_event(303, action=AuditAction.WORKFLOW_CREATED))
    await stores.workflow_runs.start(a_run(), an_audit_event(304, action=AuditAction.WORKFLOW_RUN_STARTED))
    taken = await stores.workflow_journal.claim(ID, WORKER, lease_s=60, at=after(2))
    assert taken is not None
    asked = NodeRun(node_id="ask").started(at=after(3)).waiting(due_at=after(60), asked={"prompt": "a walrus?"})
    run = replace(taken.run, nodes={"ask": asked})
    stored = await stores.workflow_journal.commit(taken.lease, run, at=after(4))
    await stores.workflow_journal.commit(taken.lease, stored.suspended(wake_at=after(60)), at=after(5))


async def everything(stores: Stores) -> None:
    for begin in (ask_for_approval, halt, put_a_tool_in_quarantine, ask_a_person):
        await begin(stores)


async def notices(stores: Stores) -> tuple[WebhookDelivery, ...]:
    return (await stores.webhooks.of_inbox(ORG, PageRequest())).items


async def test_each_thing_that_begins_to_wait_is_stored_once_for_the_webhook(stores: Stores) -> None:
    await with_webhook(stores)
    await everything(stores)
    assert sorted((each.event, each.receiver) for each in await notices(stores)) == [
        (WebhookEvent.APPROVAL_REQUESTED, SECRET),
        (WebhookEvent.TOOL_QUARANTINED, SECRET),
        (WebhookEvent.THREAD_QUARANTINED, SECRET),
        (WebhookEvent.QUESTION_ASKED, SECRET),
    ]
    claimed = await stores.webhooks.claim(at=after(900), until=after(960), limit=9, per_lane=9, busy={})
    assert [each.webhook for each in claimed] == [None] * 4
    bodies = {each.delivery.event: json.loads(each.body) for each in claimed}
    items = {event: body["waiting"][0]["item"] for event, body in bodies.items()}
    assert items[WebhookEvent.QUESTION_ASKED] == f"node:{ID}:ask"
    assert items[WebhookEvent.TOOL_QUARANTINED] == "tool:files:read"
    assert items[WebhookEvent.THREAD_QUARANTINED] == f"thread:{THREAD}"
    assert items[WebhookEvent.APPROVAL_REQUESTED].startswith("approval:apr_")
    assert not any("walrus" in each.body for each in claimed), "texts stay here"


async def test_without_a_webhook_of_the_inbox_nothing_is_stored(stores: Stores) -> None:
    await everything(stores)
    await with_webhook(stores)
    assert await notices(stores) == ()


async def test_a_notice_goes_with_what_waited(stores: Stores, database: Database) -> None:
    await with_webhook(stores)
    await everything(stores)
    by_event = {each.event: each for each in await notices(stores)}
    assert by_event[WebhookEvent.THREAD_QUARANTINED].run_id == RUN

    def parents(connection: Connection) -> set[tuple[bool, bool, bool]]:
        columns = webhook_delivery.c
        rows = connection.execute(select(columns.run_id, columns.workflow_run_id, columns.server_id))
        return {(bool(run), bool(workflow_run), bool(server)) for run, workflow_run, server in rows}

    alone = {(True, False, False), (False, True, False), (False, False, True)}
    assert await database.read(parents, scope=SYSTEM) == alone
    assert await stores.servers.delete(ORG, SERVER, an_audit_event(305, action=AuditAction.MCP_SERVER_DELETED))
    assert WebhookEvent.TOOL_QUARANTINED not in {each.event for each in await notices(stores)}


@pytest.mark.requirement("E7")
async def test_notices_of_gateway_sessions_go_by_age(stores: Stores, database: Database) -> None:
    await with_webhook(stores)
    await everything(stores)
    old, young = (replace(a_gateway_approval(number), created_at=after(number)) for number in (1, 2))
    await database.write(lambda connection: add_notices(connection, of_approvals((old, young))), scope=ORG)
    remove = stores.retention.remove_notices
    assert await remove(OTHER_ORG, after(900), limit=9) == 0
    assert [await remove(ORG, after(2), limit=9) for _ in range(2)] == [1, 0]
    assert len(await notices(stores)) == 5
    assert [await remove(ORG, after(900), limit=1) for _ in range(2)] == [1, 0]
    assert len(await notices(stores)) == 4


async def test_the_webhook_of_the_inbox_is_a_receiver_for_those_who_may_see_it(stores: Stores) -> None:
    await with_webhook(stores)
    await everything(stores)
    [inbox] = await stores.delivery_reports.receivers(ORG, has_notices=True, limit=9)
    assert (inbox.receiver, inbox.of_inbox, inbox.deliveries, inbox.open) == (SECRET, True, 4, 4)
    assert await stores.delivery_reports.receivers(ORG, has_notices=False, limit=9) == ()
    for has_notices, count in ((True, 4), (False, 0)):
        found = await stores.delivery_reports.page(ORG, DeliveryFilter(has_notices=has_notices), PageRequest())
        assert len(found.items) == count
