"""SettleLostCalls: calls of dead processes are settled as unknown, once, and not sent again."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.calls.settle_lost_calls import SettleLostCalls, due_at
from application.gateway.ports import ExpiredNotes, GatewayLedger, LostCalls
from domain.audit.event import AuditAction
from domain.tools.result import ToolOutcome
from tests.builders import KEY, START, after
from tests.doubles.gateway import InMemoryGatewayLedger
from tests.doubles.gateway_approvals import InMemoryGatewayApprovals
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_approval, a_gateway_call, a_gateway_session, a_state_with, a_waiting_call
from tests.refusals import refused, storage_away

SESSION = a_gateway_session()


@pytest.fixture
def clock() -> FixedClock:
    clock = FixedClock()
    clock.advance(200)
    return clock


@pytest.fixture
def notes(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(ExpiredNotes, instance=True)


def settling(state: InMemoryState, notes: MockType, clock: FixedClock) -> SettleLostCalls:
    return SettleLostCalls(
        calls=InMemoryGatewayApprovals(state), ledger=InMemoryGatewayLedger(state), notes=notes, clock=clock
    )


def outcomes(state: InMemoryState) -> list[ToolOutcome | None]:
    calls = state.gateway_sessions[SESSION.id].calls.values()
    return [None if settlement is None else settlement.result.outcome for _, settlement in calls]


@pytest.mark.requirement("C5", "E3", "F5")
async def test_a_call_that_is_due_is_settled_once_as_unknown_with_its_audit_entry(
    notes: MockType, clock: FixedClock
) -> None:
    lost, under_way = a_gateway_call(1, due_at=after(100)), a_gateway_call(2, due_at=after(300))
    state = a_state_with(SESSION, lost, under_way)

    assert await settling(state, notes, clock).execute() == 1
    assert await settling(state, notes, clock).execute() == 0

    assert outcomes(state) == [ToolOutcome.UNKNOWN, None]
    [entry] = state.audit.values()
    assert (entry.action, entry.resource, entry.actor) == (AuditAction.TOOL_FAILED, lost.id, KEY)


@pytest.mark.requirement("E3", "F5")
async def test_a_process_that_has_the_database_alone_settles_all_that_is_open(
    notes: MockType, clock: FixedClock
) -> None:
    calls = [a_gateway_call(number, due_at=after(10_000)) for number in range(1, 251)]  # more than one batch
    state = a_state_with(SESSION, *calls)

    assert await settling(state, notes, clock).execute(sole_owner=True) == 250
    assert set(outcomes(state)) == {ToolOutcome.UNKNOWN}


@pytest.mark.requirement("C3", "E3")
async def test_a_call_that_waits_for_an_approval_is_not_lost(notes: MockType, clock: FixedClock) -> None:
    state = a_state_with(SESSION, a_waiting_call(a_gateway_approval()))

    assert await settling(state, notes, clock).execute(sole_owner=True) == 0
    assert outcomes(state) == [None]


def test_a_call_that_is_under_way_is_never_due() -> None:
    assert due_at(START, 30.0) > after(30)


@pytest.mark.requirement("E3")
async def test_a_call_that_another_process_settles_at_the_same_time_is_not_counted(
    mocker: MockerFixture, notes: MockType, clock: FixedClock
) -> None:
    lost = mocker.create_autospec(LostCalls, instance=True)
    lost.lost.return_value = ((SESSION, a_gateway_call()),)
    ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ledger.settle.return_value = False

    assert await SettleLostCalls(calls=lost, ledger=ledger, notes=notes, clock=clock).execute() == 0


@pytest.mark.requirement("F6")
async def test_what_was_left_about_calls_and_not_fetched_in_time_is_removed(notes: MockType, clock: FixedClock) -> None:
    await settling(a_state_with(SESSION), notes, clock).execute()
    notes.forget.assert_awaited_once_with(before=clock.now())


async def test_storage_that_is_away_settles_nothing(mocker: MockerFixture, notes: MockType, clock: FixedClock) -> None:
    lost = mocker.create_autospec(LostCalls, instance=True)
    lost.lost.side_effect = storage_away()
    ledger = mocker.create_autospec(GatewayLedger, instance=True)

    with refused("storage_unavailable"):
        await SettleLostCalls(calls=lost, ledger=ledger, notes=notes, clock=clock).execute()

    ledger.settle.assert_not_awaited()
