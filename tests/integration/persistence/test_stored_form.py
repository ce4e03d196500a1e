"""How values stand in the tables: nothing readable that is secret, nothing twice, nothing a
database cannot hold."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest
from sqlalchemy import Connection, text

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.ids import ApiKeyId
from domain.json_value import JsonObject
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.policy.canary import CanaryToken
from domain.runs.usage import Usage
from domain.threads.message import TextContent
from domain.tools.result import ToolResult
from infrastructure.persistence.agents.store import SqlAgentStore
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import (
    ORG,
    RUN,
    THREAD,
    a_key,
    a_message,
    a_server,
    a_settled_call,
    a_tool_call,
    an_agent,
    an_audit_event,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import answer_step, reply_step, settle_step, start_and_claim, stored
from tests.contract.stores import Stores
from tests.databases import SqliteFiles
from tests.run_builders import some_usage

NASTY = "NUL \0, half a pair \ud83d, whole \U0001f642, \x1b[0m"


@pytest.mark.requirement("C4")
async def test_canary_tokens_of_agents_are_encrypted_and_stand_nowhere_else(database: Database) -> None:
    agents = SqlAgentStore(database=database, box=SecretBox(["a key for tests"]))
    tokens = (CanaryToken(id="vault", secret="Nightingale-4471"), CanaryToken(id="own", secret="a-key", per_run=True))
    agent = an_agent(canary_tokens=tokens)
    await agents.add(agent, an_audit_event(action=AuditAction.AGENT_CREATED, resource=agent.id))

    def rows(connection: Connection) -> str:
        tables = ("agent", "agent_version", "audit_event")
        return "".join(repr(connection.execute(text(f"SELECT * FROM {name}")).all()) for name in tables)

    kept = await database.read(rows, scope=SYSTEM)
    assert "Nightingale" not in kept
    assert "a-key" not in kept
    assert await agents.get(ORG, agent.id) == agent


@pytest.mark.requirement("B12")
async def test_environment_and_headers_of_servers_are_encrypted(database: Database) -> None:
    servers = SqlMcpServerStore(database=database, box=SecretBox(["a key for tests"]))
    server = a_server(
        config=McpServerConfig(
            slug="files", kind=McpServerKind.CUSTOM, command="run-me", env={"TOKEN": "very-secret-value"}
        )
    )
    await servers.add(server, an_audit_event(action=AuditAction.MCP_SERVER_CREATED))

    def whole_row(connection: Connection) -> str:
        return repr(connection.execute(text("SELECT * FROM mcp_server")).one())

    row = await database.read(whole_row, scope=SYSTEM)
    assert "run-me" in row
    assert "very-secret-value" not in row
    assert "TOKEN" not in row
    assert await servers.get(ORG, "files") == server


@pytest.mark.requirement("E3")
async def test_a_result_stands_in_the_ledger_until_a_message_carries_it_and_then_there_only(
    stores: Stores, database: Database
) -> None:
    claimed = await start_and_claim(stores)
    call = a_tool_call()
    settled = a_settled_call(call, ToolResult.succeeded("forty-two"))
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await stores.journal.commit(claimed.lease, settle_step(claimed.run, settled))
    assert await places_of("forty-two", database) == {"tool_call": 1}

    settled = (await stores.runs.tool_calls(ORG, RUN))[0]
    await stores.journal.commit(claimed.lease, answer_step(claimed.run, settled))
    assert await places_of("forty-two", database) == {"message": 1}
    assert await stores.runs.tool_calls(ORG, RUN) == (settled,)


async def test_a_message_and_its_event_are_one_row(stores: Stores, database: Database) -> None:
    claimed = await start_and_claim(stores)
    step = reply_step(claimed.run, text="I remember everything.")
    await stores.journal.commit(claimed.lease, step)
    assert await places_of("I remember everything.", database) == {"message": 1}
    event = (await stores.runs.events(ORG, RUN, after_seq=claimed.run.last_seq, limit=1))[0]
    assert event.data == step.events[0].data


@pytest.mark.requirement("E2")
async def test_text_no_database_can_hold_is_kept_inside_json(stores: Stores) -> None:
    claimed = await start_and_claim(stores)
    params: JsonObject = {"path": NASTY, NASTY: [1.5, None, 2**70]}
    call = a_tool_call(name="mcp__\0", params=params)
    settled = a_settled_call(call, ToolResult.succeeded(NASTY))
    step = reply_step(claimed.run, call, text=NASTY)
    await stores.journal.commit(claimed.lease, step)
    await stores.journal.commit(claimed.lease, settle_step(claimed.run, settled))

    assert (await messages_of(stores.runs, ORG, RUN))[-1].text == NASTY
    stored_call = (await stores.runs.tool_calls(ORG, RUN))[0]
    assert (stored_call.name, stored_call.params) == ("mcp__\0", params)
    assert stored_call.result == ToolResult.succeeded(NASTY)
    events = await stores.runs.events(ORG, RUN, after_seq=claimed.run.last_seq, limit=10)
    assert [event.data for event in events][: len(step.events)] == [event.data for event in step.events]


async def test_names_that_no_database_can_hold_are_stored_legibly_and_found_again(stores: Stores) -> None:
    await stores.identity.add_key(
        replace(a_key(), name=NASTY), an_audit_event(2, action=AuditAction.KEY_CREATED, tool=NASTY)
    )
    keys = await all_of(partial(stores.identity.keys, ORG))
    assert keys[0].name == NASTY.replace("\0", "�").replace("\ud83d", "�" * 3)
    audit = await stores.audit.page(ORG, AuditFilter(tool=NASTY), PageRequest())
    assert len(audit.items) == 1
    await stores.agents.save(
        an_agent(name=NASTY, version=2), expected_version=1, audit=an_audit_event(3, action=AuditAction.AGENT_UPDATED)
    )
    found = await stores.agents.find(ORG, NASTY)
    assert found is not None
    assert found.config.name == NASTY


@pytest.mark.parametrize("absurd", ["", "\0", "\ud83d", "x" * 100_000, "' OR 1=1 --"])
async def test_absurd_ids_find_nothing(stores: Stores, absurd: str) -> None:
    assert await stores.agents.find(ORG, absurd) is None
    assert await stores.servers.get(ORG, absurd) is None
    assert await stores.identity.key_by_hash(absurd) is None
    assert not await stores.identity.revoke_key(ORG, ApiKeyId(absurd), an_audit_event())


@pytest.mark.requirement("A10")
async def test_money_is_stored_to_the_billionth_of_a_dollar(stores: Stores) -> None:
    claimed = await start_and_claim(stores)
    usage = Usage().after_turn(some_usage(cost_usd="0.000000001")).after_turn(some_usage(cost_usd="1234.5"))
    await stores.journal.commit(claimed.lease, replace(reply_step(claimed.run), run=replace(claimed.run, usage=usage)))
    assert (await stored(stores, RUN)).usage.cost_usd == Decimal("1234.500000001")


async def test_a_large_message_is_read_back_whole(stores: Stores) -> None:
    large = a_message(content=(TextContent(text="0123456789" * 500_000),))
    await stores.threads.append(ORG, large)
    assert await all_of(partial(stores.threads.messages, ORG, THREAD)) == (large,)


async def test_a_path_with_signs_that_mean_something_in_addresses_is_a_path(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    odd = path.rename(path.with_name("100% odd?name#1 .db"))
    from_odd = SqliteDatabase(odd)
    await from_odd.start()
    assert await from_odd.read(lambda c: c.execute(text("SELECT count(*) FROM run")).scalar_one(), scope=SYSTEM) == 0
    await from_odd.stop()


async def places_of(fragment: str, database: Database) -> dict[str, int]:
    """In which tables, in how many rows, a text stands."""

    def unit(connection: Connection) -> dict[str, int]:
        tables = ("message", "run", "run_event", "tool_call", "audit_event")
        rows = {table: connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables}
        counts = {table: sum(fragment in repr(row) for row in found) for table, found in rows.items()}
        return {table: count for table, count in counts.items() if count}

    return await database.read(unit, scope=SYSTEM)
