"""A session is halted to the end, whoever stops waiting for that."""

import asyncio
from contextlib import suppress

import pytest
from pytest_mock import MockerFixture

from application.gateway.gateway_access import GatewayAccess
from application.gateway.halt_session import HaltGatewaySession
from application.gateway.ports import GatewayLedger
from application.runs.cancel_run import CancelRun
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import GatewaySessionId, ToolCallId
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from tests.builders import AGENT, KEY, ORG, RUN, START, THREAD, after, numbered

SESSION = GatewaySession(
    id=GatewaySessionId(numbered("gws", 1)),
    organization_id=ORG,
    agent_id=AGENT,
    thread_id=THREAD,
    names=ToolNames.NAMESPACED,
    created_by=KEY,
    created_at=START,
    expires_at=after(3600),
    run_id=RUN,
)
CALL = GatewayCall(
    id=ToolCallId(numbered("call", 1)),
    session_id=SESSION.id,
    organization_id=ORG,
    name="mcp__files__echo",
    type=ToolType.MCP_TOOL,
    server_id=None,
    params={},
    recorded_at=START,
)


@pytest.mark.requirement("C4", "F5")
async def test_a_session_whose_client_leaves_while_it_is_halted_is_halted_all_the_same(mocker: MockerFixture) -> None:
    is_storing, may_store, is_done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stored(*_: object) -> None:
        is_storing.set()
        await may_store.wait()

    async def cancelled(*_: object) -> None:
        is_done.set()

    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ledger.halt.side_effect = stored
    access = mocker.create_autospec(GatewayAccess, instance=True)
    cancel_run = mocker.create_autospec(CancelRun, instance=True)
    cancel_run.execute.side_effect = cancelled
    halting = HaltGatewaySession(ledger=ledger, access=access, cancel_run=cancel_run)
    settlement = GatewaySettlement(call=CALL, result=ToolResult.succeeded(""), duration_ms=0, at=START)

    waiting = asyncio.create_task(halting.execute(SESSION, settlement, None, "vault"))
    async with asyncio.timeout(10):
        await is_storing.wait()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        may_store.set()
        await is_done.wait()

    access.forget.assert_called_once_with(SESSION.id)
