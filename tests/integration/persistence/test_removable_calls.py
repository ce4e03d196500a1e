"""Gateway calls of a thread are read page by page, those of others are not."""

from dataclasses import replace

import pytest

from domain.gateway.call import GatewayCall, GatewayCallState, GatewaySettlement
from domain.ids import ToolCallId
from domain.tools.result import ToolResult
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.gateway.removable_calls import SqlRemovableCalls
from tests.builders import ORG, OTHER_ORG, START, THREAD, a_thread, a_thread_id, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.gateway_builders import a_gateway_call, a_gateway_session

pytestmark = pytest.mark.requirement("K5")


async def test_calls_of_all_sessions_of_a_thread_are_read_once_with_their_outcomes(
    database: Database, stores: Stores
) -> None:
    sessions = {
        number: a_gateway_session(number, thread_id=a_thread_id(2) if number == 3 else THREAD, token_hash=f"{number}")
        for number in (1, 2, 3)
    }
    for number, session in sessions.items():
        own = a_thread(a_thread_id(2)) if number == 3 else None
        await stores.gateway_sessions.add(session, an_audit_event(90 + number), thread=own)
    for number in range(1, 8):
        await stores.gateway_ledger.intend(replace(a_gateway_call(number), session_id=sessions[1 + number % 3].id))
    done = replace(a_gateway_call(3), session_id=sessions[1].id)
    outcome = GatewaySettlement(call=done, result=ToolResult.failed("gone", "It is gone."), duration_ms=7, at=START)
    assert await stores.gateway_ledger.settle(outcome, an_audit_event(99))

    calls = SqlRemovableCalls(database=database)
    found: list[GatewayCall | GatewaySettlement] = []
    after = None
    while page := await calls.of_thread(ORG, THREAD, after=after, limit=2):
        assert len(page) <= 2
        found += page
        after = page[-1].call if isinstance(page[-1], GatewaySettlement) else page[-1]

    by_id = {(one.call.id if isinstance(one, GatewaySettlement) else one.id): one for one in found}
    assert list(by_id) == [ToolCallId(numbered("call", number)) for number in (3, 6, 1, 4, 7)]
    assert [one for one in found if isinstance(one, GatewaySettlement)] == [
        replace(outcome, call=replace(done, state=GatewayCallState.SETTLED))
    ]
    assert await calls.of_thread(OTHER_ORG, THREAD, after=None, limit=9) == ()
