"""SettleGatewayCall: how the outcome of a call is stored, audited and traced."""

import asyncio

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.ports import GatewayLedger
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.tracing.ports import GatewayTracer
from domain.audit.event import AuditAction
from domain.errors import conflict
from domain.tools.result import ToolOutcome, ToolResult
from tests.doubles.gateway import InMemoryGatewayLedger
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import CANARY, a_gateway_call, a_gateway_session, a_gateway_toolset, a_state_with
from tests.refusals import refused, storage_away

SESSION, CALL, TOOLBOX = a_gateway_session(), a_gateway_call(), a_gateway_toolset(canary=True)
DONE = ToolResult.succeeded("hi")
HALTED = conflict("gateway_session_halted", "The session was halted.")


class Ports:
    """A recorded call in memory, a tracer that listens, and a halt that is only recorded."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION, CALL)
        self.tracer: MockType = mocker.create_autospec(GatewayTracer, instance=True)
        self.tracer.enabled = True
        self.halting: MockType = mocker.create_autospec(HaltGatewaySession, instance=True)
        self.halting.execute.return_value = HALTED

    def settling(self, ledger: GatewayLedger | None = None) -> SettleGatewayCall:
        return SettleGatewayCall(
            ledger=ledger or InMemoryGatewayLedger(self.state),
            halting=self.halting,
            tracer=self.tracer,
            clock=FixedClock(),
        )

    def outcome(self) -> ToolOutcome | None:
        """What is stored of the call."""
        stored = self.state.gateway_sessions[SESSION.id].calls[CALL.id][1]
        return None if stored is None else stored.result.outcome

    def audited(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C5", "E3", "F5")
async def test_an_outcome_is_stored_once_with_its_audit_entry_and_traced(ports: Ports) -> None:
    await ports.settling().settle(SESSION, TOOLBOX, CALL, DONE, decision=None, duration_s=0.25)
    await ports.settling().settle(SESSION, TOOLBOX, CALL, ToolResult.failed("late", "Too late."), decision=None)

    assert ports.outcome() is ToolOutcome.SUCCEEDED
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.duration_ms) == (AuditAction.TOOL_EXECUTED, SESSION.created_by, 250)
    assert ports.tracer.gateway_call.call_args_list[0].args[0].settlement.result is DONE


@pytest.mark.requirement("C5", "F5")
async def test_a_refused_call_is_stored_with_its_audit_entry(ports: Ports) -> None:
    refusal = ToolResult.blocked("tool_denied", "No.")

    await ports.settling().refuse(SESSION, TOOLBOX, CALL, refusal, decision=None)

    assert ports.outcome() is ToolOutcome.BLOCKED
    assert ports.audited() == [AuditAction.TOOL_BLOCKED]
    ports.tracer.gateway_call.assert_called_once()


@pytest.mark.requirement("E3")
async def test_a_call_that_was_cut_short_has_an_unknown_outcome(ports: Ports) -> None:
    await ports.settling().cut_short(SESSION, TOOLBOX, CALL, decision=None, duration_s=1.0, asked=())

    assert ports.outcome() is ToolOutcome.UNKNOWN
    ports.halting.execute.assert_not_awaited()


@pytest.mark.requirement("E3")
async def test_the_outcome_of_a_call_that_was_cut_short_is_stored_though_its_client_leaves(
    ports: Ports, mocker: MockerFixture
) -> None:
    is_storing, may_store, is_stored = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def settle(*_: object) -> bool:
        is_storing.set()
        await may_store.wait()
        is_stored.set()
        return True

    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ledger.settle.side_effect = settle
    cutting = ports.settling(ledger).cut_short(SESSION, TOOLBOX, CALL, decision=None, duration_s=1.0, asked=())
    waiting = asyncio.create_task(cutting)

    async with asyncio.timeout(10):
        await is_storing.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        may_store.set()
        await is_stored.wait()

    assert waiting.cancelled()


@pytest.mark.requirement("C4")
async def test_a_call_that_was_cut_short_after_a_canary_token_was_seen_ends_the_session(ports: Ports) -> None:
    tools = a_gateway_toolset(canary=True)
    tools.guard.progress(CALL.id, {"message": CANARY})

    await ports.settling().cut_short(SESSION, tools, CALL, decision=None, duration_s=1.0, asked=())

    session, settlement, _, canary_id = ports.halting.execute.await_args.args
    assert (session, settlement.result.outcome, canary_id) == (SESSION, ToolOutcome.UNKNOWN, "vault")
    assert ports.outcome() is None  # halting stores it


@pytest.mark.requirement("C4", "F5")
async def test_a_call_with_a_canary_token_ends_the_session_and_its_client_is_told_that(ports: Ports) -> None:
    told = await ports.settling().halt(SESSION, TOOLBOX, CALL, DONE, "vault", decision=None, duration_s=0.0)

    assert told is HALTED
    assert ports.halting.execute.await_args.args[3] == "vault"
    ports.tracer.gateway_call.assert_called_once()


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("method", ["settle", "refuse"])
async def test_an_outcome_that_cannot_be_stored_is_not_traced(ports: Ports, mocker: MockerFixture, method: str) -> None:
    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    getattr(ledger, method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await getattr(ports.settling(ledger), method)(SESSION, TOOLBOX, CALL, DONE, decision=None)

    ports.tracer.gateway_call.assert_not_called()


async def test_nothing_is_traced_while_nobody_listens(ports: Ports) -> None:
    ports.tracer.enabled = False

    await ports.settling().settle(SESSION, TOOLBOX, CALL, DONE, decision=None)

    ports.tracer.gateway_call.assert_not_called()
