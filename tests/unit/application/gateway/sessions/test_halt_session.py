"""HaltGatewaySession: what ends with a session in which a canary token was found."""

import asyncio

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.ports import GatewayLedger
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.runs.cancel_run import CancelRun
from domain.audit.event import AuditAction
from domain.errors import ErrorKind
from domain.gateway.call import GatewaySettlement
from domain.identity.role import Role
from domain.tools.result import ToolOutcome, ToolResult
from tests.builders import KEY, ORG, RUN, START, THREAD
from tests.doubles.gateway import InMemoryGatewayLedger
from tests.gateway_builders import a_gateway_call, a_gateway_session, a_state_with
from tests.refusals import refused, storage_away

SESSION, OF_RUN, CALL = a_gateway_session(), a_gateway_session(run_id=RUN), a_gateway_call()
SETTLEMENT = GatewaySettlement(call=CALL, result=ToolResult.unknown("?"), duration_ms=0, at=START)


@pytest.fixture
def access(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(GatewayAccess, instance=True)


@pytest.fixture
def cancel_run(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(CancelRun, instance=True)


@pytest.mark.requirement("C4", "F5")
async def test_the_call_is_settled_the_session_revoked_and_its_thread_put_in_quarantine(
    access: MockType, cancel_run: MockType
) -> None:
    state = a_state_with(SESSION, CALL)
    halting = HaltGatewaySession(ledger=InMemoryGatewayLedger(state), access=access, cancel_run=cancel_run)

    told = await halting.execute(SESSION, SETTLEMENT, None, "vault")

    stored = state.gateway_sessions[SESSION.id]
    settlement = stored.calls[CALL.id][1]
    assert settlement is not None
    assert (settlement.result.outcome, stored.session.revoked_at) == (ToolOutcome.UNKNOWN, START)
    quarantine = state.threads[THREAD].thread.quarantine
    assert quarantine is not None
    assert quarantine.canary_id == "vault"
    assert (told.code, told.kind) == ("gateway_session_halted", ErrorKind.CONFLICT)
    access.forget.assert_called_once_with(SESSION.id)


@pytest.mark.requirement("C4", "C5")
async def test_the_call_and_the_end_of_the_session_are_audited(access: MockType, cancel_run: MockType) -> None:
    state = a_state_with(OF_RUN, CALL)
    halting = HaltGatewaySession(ledger=InMemoryGatewayLedger(state), access=access, cancel_run=cancel_run)

    await halting.execute(OF_RUN, SETTLEMENT, None, "vault")

    failed, halted = state.audit.values()
    assert (failed.action, failed.actor) == (AuditAction.TOOL_FAILED, KEY)
    assert (halted.action, halted.actor, halted.run_id) == (AuditAction.SESSION_HALTED, "system", RUN)
    assert halted.details == {"reason": "canary", "canary_id": "vault", "tool_call_id": CALL.id}


@pytest.mark.requirement("C4", "F5")
async def test_the_run_of_the_session_is_cancelled_for_whoever_opened_it(
    mocker: MockerFixture, access: MockType, cancel_run: MockType
) -> None:
    ledger = mocker.create_autospec(GatewayLedger, instance=True)

    await HaltGatewaySession(ledger=ledger, access=access, cancel_run=cancel_run).execute(
        OF_RUN, SETTLEMENT, None, "vault"
    )

    command = cancel_run.execute.await_args.args[0]
    principal = command.principal
    assert (command.run_id, principal.key_id, principal.organization_id) == (RUN, KEY, ORG)
    assert principal.role is Role.OPERATOR


async def test_a_session_without_a_run_cancels_none(
    mocker: MockerFixture, access: MockType, cancel_run: MockType
) -> None:
    ledger = mocker.create_autospec(GatewayLedger, instance=True)

    await HaltGatewaySession(ledger=ledger, access=access, cancel_run=cancel_run).execute(
        SESSION, SETTLEMENT, None, "vault"
    )

    cancel_run.execute.assert_not_awaited()


@pytest.mark.requirement("C4")
async def test_the_run_goes_on_while_the_end_of_its_session_cannot_be_stored(
    mocker: MockerFixture, access: MockType, cancel_run: MockType
) -> None:
    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ledger.halt.side_effect = storage_away()
    halting = HaltGatewaySession(ledger=ledger, access=access, cancel_run=cancel_run)

    with refused("storage_unavailable"):
        await halting.execute(OF_RUN, SETTLEMENT, None, "vault")

    access.forget.assert_not_called()
    cancel_run.execute.assert_not_awaited()


@pytest.mark.requirement("C4", "F5")
async def test_a_session_whose_client_leaves_while_it_is_halted_is_halted_all_the_same(
    mocker: MockerFixture, access: MockType, cancel_run: MockType
) -> None:
    is_storing, may_store, is_done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stored(*_: object) -> None:
        is_storing.set()
        await may_store.wait()

    async def cancelled(*_: object) -> None:
        is_done.set()

    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ledger.halt.side_effect = stored
    cancel_run.execute.side_effect = cancelled
    halting = HaltGatewaySession(ledger=ledger, access=access, cancel_run=cancel_run)

    waiting: asyncio.Task[object] = asyncio.create_task(halting.execute(OF_RUN, SETTLEMENT, None, "vault"))
    async with asyncio.timeout(10):
        await is_storing.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        may_store.set()
        await is_done.wait()

    access.forget.assert_called_once_with(OF_RUN.id)
