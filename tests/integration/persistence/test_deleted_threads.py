"""What is left of a thread in the database once it has been deleted, or has outlived its time: its
audit, and sums of usage."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from sqlalchemy import Connection, Table, select, text

from application.runs.new_run import IdempotencyKey
from application.usage.ports import Reservation
from domain.a2a.push import PushConfig, PushTarget
from domain.audit.event import AuditAction
from domain.gateway.call import GatewayCall
from domain.gateway.client import GatewayClient
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import GatewayClientId, GatewayNoteId, GatewaySessionId, SourceId, ToolCallId
from domain.runs.turn_end import turn_end
from domain.runs.usage import ModelSpending
from domain.sources.chunking import chunks_of
from domain.sources.source import IndexedChunk, Source, SourceKind
from domain.sources.words import words_of
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import metadata, usage
from tests.approval_builders import awaiting_approval_call
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    RUN,
    START,
    THREAD,
    a_deletion,
    a_message,
    a_new_run,
    a_run,
    a_settled_call,
    a_thread,
    a_tool_call,
    after,
    an_audit_event,
    numbered,
)
from tests.contract.run_changes import cancel, messages_of
from tests.contract.run_steps import claim, reply_step, settle_step
from tests.contract.stores import Stores
from tests.gateway_builders import a_client_grant
from tests.run_builders import some_usage
from tests.schedule_builders import a_firing, a_schedule, made
from tests.webhook_builders import a_webhook, announcing

OF_A_THREAD = {
    "approval",
    "budget_reservation",
    "gateway_call",
    "gateway_client",
    "gateway_grant",
    "gateway_note",
    "gateway_session",
    "idempotency_key",
    "message",
    "push_config",
    "run",
    "run_event",
    "run_request",
    "source",
    "source_chunk",
    "source_part",
    "thread",
    "timer",
    "tool_call",
    "webhook_delivery",
}
"""Tables with rows of threads. Whoever adds one adds it here, has `a_full_thread` fill it, and sees
below whether it is emptied."""

AUDIT = {"audit_event", "audit_forward", "audit_head", "audit_key", "audit_seal"}
OF_NO_THREAD = {
    "agent",
    "agent_version",
    "api_key",
    "console_session",
    "custom_role",
    "identity_provider",
    "impersonation",
    "limit_lease",
    "mcp_connection_state",
    "mcp_server",
    "mcp_server_state",
    "mcp_tool_definition",
    "model_provider",
    "oauth_authorization",
    "oauth_grant",
    "organization",
    "organization_group",
    "organization_group_member",
    "person_grant",
    "person_usage",
    "provisioned_user",
    "scim_token",
    "secret",
    "tool_usage",
    "usage",
    "user_account",
    "user_group",
    "user_group_member",
    "webhook_key",
}
"""Tables in which nothing names a thread or anything in one, and which none of its text reaches."""

OF_WORKFLOWS = {"workflow", "workflow_event", "workflow_node_run", "workflow_run", "workflow_tool", "workflow_version"}
"""What an agent's node came to is the workflow run's own: it is kept with that, whatever becomes of
the thread that the agent worked on."""

NAMES_A_THREAD = {"schedule"}
"""What somebody set up to begin runs on a thread: it names that, and nothing in it, also when it is
gone, as it then says itself at every fire."""

SECRET_WORD = "walrus"
"""In everything that somebody has said, uploaded or answered on the thread."""

SOURCE = SourceId(numbered("src", 1))
RESERVATION = Reservation(
    agent_id=AGENT,
    day=START.date(),
    amount_usd=Decimal("0.1"),
    organization_budget_usd=Decimal(1),
    agent_budget_usd=None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """By what a thread is recognized, and the tables in which it was while a run waited on it."""

    needles: frozenset[str]
    tables: set[str]


async def a_full_thread(stores: Stores, database: Database) -> Traces:
    """THREAD, idle and without an unfinished run, after something of everything has happened on
    it."""
    await stores.threads.append(ORG, a_message(text=f"the {SECRET_WORD}"))
    await _add_source(stores)
    question = a_run(input=f"Where is the {SECRET_WORD}?", metadata={"about": SECRET_WORD})
    key = IdempotencyKey(key=SECRET_WORD, body_digest="sha256:1")
    schedule = a_schedule(thread_id=THREAD)
    await stores.schedules.add(schedule, made(61))
    question = announcing(question, a_webhook())
    await stores.runs.start(replace(a_new_run(question, idempotency=key), firing=a_firing(schedule, after(60))))
    claimed = await claim(stores, RUN)
    assert await stores.reservations.reserve(claimed.lease, RESERVATION)
    calls = (
        a_tool_call(0, params={"text": SECRET_WORD}),
        awaiting_approval_call(a_tool_call(1, params={"text": SECRET_WORD}), ttl_s=60),
    )
    spending = ModelSpending(model="openai:a", usage=some_usage(), at=START)
    reply = replace(reply_step(claimed.run, *calls, text=SECRET_WORD), spent=(spending,))
    await stores.journal.commit(claimed.lease, reply)
    settled = a_settled_call(calls[0], ToolResult.succeeded(SECRET_WORD))
    await stores.journal.commit(claimed.lease, settle_step(reply.run, settled))
    answered = a_tool_call(0, params={"text": SECRET_WORD}, result=settled.result)
    end = turn_end(reply.run, (answered, calls[1]), list(reply.messages), at=START)
    assert end is not None
    await stores.journal.commit(claimed.lease, end)
    await _call_through_the_gateway(stores)
    target = PushTarget(url=f"https://hooks.example.com/{SECRET_WORD}")
    config = PushConfig(id=SECRET_WORD, organization_id=ORG, run_id=RUN, target=target, created_at=START)
    await stores.push_configs.put(config, an_audit_event(71, action=AuditAction.PUSH_CONFIG_CREATED))
    messages = await messages_of(stores.runs, ORG, RUN)
    named = [THREAD, RUN, SOURCE, SECRET_WORD, *(message.id for message in messages), *(call.id for call in calls)]
    needles = frozenset([*named, *(approval.id for approval in end.approvals)])
    tables = await tables_with(database, needles)
    await cancel(stores.runs, ORG, RUN, actor=KEY, at=START)
    return Traces(needles=needles, tables=tables)


async def _call_through_the_gateway(stores: Stores) -> None:
    session = GatewaySession(
        id=GatewaySessionId(numbered("gws", 1)),
        organization_id=ORG,
        agent_id=AGENT,
        thread_id=THREAD,
        names=ToolNames.NAMESPACED,
        token_hash="ab" * 32,
        created_by=KEY,
        created_at=START,
        expires_at=after(60),
    )
    grant = a_client_grant(session.id, resource=f"https://dragoman.example/mcp?agent={SECRET_WORD}")
    created = an_audit_event(70, action=AuditAction.GATEWAY_SESSION_CREATED)
    await stores.client_grants.add(grant, session, created, thread=a_thread())
    call = GatewayCall(
        id=ToolCallId(numbered("call", 77)),
        session_id=session.id,
        organization_id=ORG,
        name="code_execution",
        type=ToolType.CODE_EXECUTION,
        server_id=None,
        params={"code": SECRET_WORD},
        recorded_at=START,
    )
    assert await stores.gateway_ledger.intend(call)
    client = GatewayClient(
        id=GatewayClientId(numbered("gwc", 1)),
        organization_id=ORG,
        session_id=session.id,
        version="2025-11-25",
        capabilities={},
    )
    await stores.gateway_clients.change(client, lambda known: known.subscribed(SECRET_WORD))
    note = GatewayNote(
        id=GatewayNoteId(numbered("gwn", 1)),
        organization_id=ORG,
        session_id=session.id,
        kind=GatewayNoteKind.QUESTION,
        call_id=call.id,
        sealed=SECRET_WORD.encode(),
        created_at=START,
        expires_at=after(60),
    )
    await stores.gateway_notes.leave(note)


async def _add_source(stores: Stores) -> None:
    source = Source(
        id=SOURCE,
        organization_id=ORG,
        thread_id=THREAD,
        name=f"{SECRET_WORD}.txt",
        kind=SourceKind.TEXT,
        size=6,
        digest="ab" * 32,
        created_at=START,
    )
    pieces = [
        IndexedChunk(chunk=chunk, words=" ".join(words_of(chunk.found_by)))
        for chunk in chunks_of(f"The {SECRET_WORD} eats.", source.kind)
    ]
    await stores.source_intake.begin(source, stale_before=after(-60))
    await stores.source_intake.put_part(source, 0, SECRET_WORD.encode())
    await stores.source_intake.put_chunks(source, 0, pieces)
    await stores.source_intake.finish(source, an_audit_event(60, action=AuditAction.SOURCE_ADDED, resource=SOURCE))


async def tables_with(database: Database, needles: frozenset[str]) -> set[str]:
    """The tables that have one of these in any column of any row."""

    def unit(connection: Connection) -> set[str]:
        return {table.name for table in metadata.sorted_tables if _holds(connection, table, needles)}

    return await database.read(unit, scope=SYSTEM)


def _holds(connection: Connection, table: Table, needles: frozenset[str]) -> bool:
    rows = [repr(tuple(row)) for row in connection.execute(select(table))]
    return any(needle in row for row in rows for needle in needles)


async def by_request(stores: Stores) -> None:
    assert await stores.threads.delete(ORG, THREAD, a_deletion())


async def by_age(stores: Stores) -> None:
    more = True
    while more:
        more = (await stores.retention.remove(ORG, THREAD, after(3_600))).more


def test_of_every_table_it_is_known_whether_it_holds_anything_of_threads() -> None:
    assert set(metadata.tables) == OF_A_THREAD | AUDIT | OF_NO_THREAD | OF_WORKFLOWS | NAMES_A_THREAD, (
        "name the table in this file"
    )


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("delete", [by_request, by_age])
async def test_of_a_deleted_thread_nothing_is_left_but_its_audit_and_sums_of_usage(
    stores: Stores, database: Database, delete: Callable[[Stores], Awaitable[None]]
) -> None:
    traces = await a_full_thread(stores, database)
    assert traces.tables == OF_A_THREAD | NAMES_A_THREAD | {"audit_event"}
    assert await database.read(_index_entries, scope=SYSTEM) == 1

    await delete(stores)

    assert await tables_with(database, traces.needles) == {"audit_event"} | NAMES_A_THREAD
    assert await tables_with(database, traces.needles - {THREAD}) == {"audit_event"}
    assert await tables_with(database, frozenset([SECRET_WORD])) == set()
    assert (
        await database.read(
            lambda connection: connection.execute(select(usage.c.model_calls)).scalar_one(), scope=SYSTEM
        )
        == 1
    )
    assert await database.read(_index_entries, scope=SYSTEM) == 0


def _index_entries(connection: Connection) -> int:
    """How many pieces of text the search finds the word in: SQLite's index is a table that the
    metadata does not know."""
    if connection.dialect.name == "sqlite":
        matching = text("SELECT count(*) FROM source_words WHERE source_words MATCH :word")
    else:
        matching = text("SELECT count(*) FROM source_chunk WHERE words @@ plainto_tsquery('simple', :word)")
    return int(connection.execute(matching, {"word": SECRET_WORD}).scalar_one())
