"""No change is stored whose audit entry cannot be. A failing unit stores nothing on either
database: test_units_of_work.py."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from application.runs.ports import ClaimedRun
from domain.audit.event import AuditAction, AuditEvent
from domain.secrets.secret import Secret
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import (
    KEY,
    ORG,
    START,
    a_key,
    a_server,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    an_audit_event,
)
from tests.contract.run_changes import cancel
from tests.contract.run_steps import claim, finish_step, reply_step, run_number, settle_step, start, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.integration.persistence.test_fencing import dump

CALL = a_tool_call(0)
QUEUED = run_number(2, thread_id=a_thread_id(2))
REFUSE = "CREATE TRIGGER no_entries BEFORE INSERT ON audit_event BEGIN SELECT RAISE(ABORT, 'no entries'); END"

Change = Callable[[Stores, ClaimedRun], Awaitable[object]]


def entry(action: AuditAction) -> AuditEvent:
    return an_audit_event(99, action=action)


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda stores, _: stores.agents.save(
                an_agent(version=2), expected_version=1, audit=entry(AuditAction.AGENT_UPDATED)
            ),
            id="agent",
        ),
        pytest.param(
            lambda stores, _: stores.servers.add(a_server(), entry(AuditAction.MCP_SERVER_CREATED)), id="server"
        ),
        pytest.param(lambda stores, _: stores.identity.add_key(a_key(), entry(AuditAction.KEY_CREATED)), id="key"),
        pytest.param(
            lambda stores, _: stores.secrets.put(
                Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START),
                "value",
                entry(AuditAction.SECRET_SET),
            ),
            id="secret",
        ),
        pytest.param(lambda stores, _: claim(stores, QUEUED.id), id="start of a run"),
        pytest.param(
            lambda stores, claimed: stores.journal.commit(
                claimed.lease, settle_step(claimed.run, a_settled_call(CALL))
            ),
            id="outcome of a tool",
        ),
        pytest.param(
            lambda stores, claimed: stores.journal.commit(claimed.lease, finish_step(claimed.run)), id="end of a run"
        ),
        pytest.param(lambda stores, _: cancel(stores.runs, ORG, QUEUED.id, actor=KEY, at=after(9)), id="cancelled run"),
    ],
)
async def test_a_change_whose_entry_cannot_be_stored_leaves_every_table_as_it_was(
    sqlite: SqliteDatabase, change: Change
) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    await stores.threads.add(a_thread(a_thread_id(2)))
    claimed = await start_and_claim(stores)
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, CALL))
    await start(stores, QUEUED)
    await sqlite.write(lambda connection: connection.execute(text(REFUSE)), scope=SYSTEM)
    before = await dump(sqlite)

    with pytest.raises(Exception, match="no entries"):
        await change(stores, claimed)

    assert await dump(sqlite) == before
    assert {CALL.id in row for row in before["tool_call"]} == {True}
