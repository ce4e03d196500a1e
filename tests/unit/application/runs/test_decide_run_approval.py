"""DecideRunApproval: a decision resumes the run, an expiry denies the call."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.decide_run_approval import DecideRunApproval
from application.runs.ports import RunQueue, RunStore
from application.runs.resume_run import ResumeRun, ResumeRunCommand
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalState
from domain.approvals.decision import CallDecision
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from domain.tools.result import ToolOutcome
from tests.approval_builders import awaiting_approval_call
from tests.builders import RUN, START, a_tool_call
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_approval
from tests.refusals import refused, storage_away
from tests.run_builders import a_state_with_run, a_use_awaiting, a_waiting_run, approval_of
from tests.unit.application.actors import a_principal

FIRST, SECOND = (awaiting_approval_call(a_tool_call(index)) for index in (0, 1))
APPROVAL, OTHER = approval_of(FIRST), approval_of(SECOND)


class Ports:
    """Mocks of what `DecideRunApproval` calls, and a clock."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.resume_run: MockType = mocker.create_autospec(ResumeRun, instance=True)
        self.runs: MockType = mocker.create_autospec(RunStore, instance=True)
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self._wakeups = mocker.create_autospec(Wakeups, instance=True)

    def deciding(self, state: InMemoryState | None = None) -> DecideRunApproval:
        runs = self.runs if state is None else InMemoryRunStore(state, self._wakeups)
        return DecideRunApproval(resume_run=self.resume_run, runs=runs, queue=self.queue, clock=FixedClock())


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C3")
async def test_a_decision_resumes_the_run_with_it(ports: Ports) -> None:
    operator = a_principal(Role.OPERATOR)

    decision = CallDecision(
        tool_call_id=APPROVAL.tool_call_id,
        approve=True,
        arguments={"text": "edited"},
        reason="because",
        approval_id=APPROVAL.id,
    )

    await ports.deciding().execute(operator, APPROVAL, decision)

    ports.resume_run.execute.assert_awaited_once_with(
        ResumeRunCommand(principal=operator, run_id=RUN, approvals=(decision,))
    )


async def test_a_refused_decision_reaches_the_caller(ports: Ports) -> None:
    ports.resume_run.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.deciding().execute(
            a_principal(), APPROVAL, CallDecision(tool_call_id=APPROVAL.tool_call_id, approve=True)
        )


@pytest.mark.requirement("C3", "C5")
async def test_an_expiry_denies_the_call_and_submits_the_run(ports: Ports) -> None:
    state = a_state_with_run(a_waiting_run(a_use_awaiting(APPROVAL)), FIRST)
    state.approvals[APPROVAL.id] = APPROVAL

    assert await ports.deciding(state).expire(APPROVAL) is True

    call = state.runs[RUN].calls[FIRST.id]
    assert call.result is not None
    assert (call.result.outcome, call.result.error_code) == (ToolOutcome.BLOCKED, "approval_expired")
    assert state.approvals[APPROVAL.id].state is ApprovalState.EXPIRED
    assert [entry.actor for entry in state.audit.values() if entry.action is AuditAction.TOOL_DENIED] == ["system"]
    ports.queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("C3")
async def test_a_run_with_another_pending_call_keeps_waiting(ports: Ports) -> None:
    state = a_state_with_run(a_waiting_run(a_use_awaiting(APPROVAL), a_use_awaiting(OTHER)), FIRST, SECOND)
    state.approvals = {approval.id: approval for approval in (APPROVAL, OTHER)}

    assert await ports.deciding(state).expire(APPROVAL) is True

    stored = state.runs[RUN]
    assert (stored.run.status, stored.calls[SECOND.id].state) == (
        RunStatus.REQUIRES_ACTION,
        ToolCallState.AWAITING_APPROVAL,
    )
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("C3")
async def test_an_approval_that_ended_before_its_expiry_stays_as_it_is(ports: Ports) -> None:
    state = a_state_with_run(a_waiting_run(a_use_awaiting(APPROVAL)), FIRST)
    state.approvals[APPROVAL.id] = APPROVAL
    await ports.deciding(state).expire(APPROVAL)
    audit = dict(state.audit)

    assert await ports.deciding(state).expire(APPROVAL) is False

    assert (state.approvals[APPROVAL.id].decided_at, state.audit) == (START, audit)
    ports.queue.submit.assert_awaited_once()


async def test_the_expiry_of_a_deleted_run_denies_nothing(ports: Ports) -> None:
    assert await ports.deciding(InMemoryState()).expire(APPROVAL) is False

    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("C3")
async def test_an_expiry_that_cannot_be_stored_is_not_mistaken_for_an_ended_approval(ports: Ports) -> None:
    ports.runs.change.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.deciding().expire(APPROVAL)

    ports.queue.submit.assert_not_awaited()


async def test_an_approval_of_a_gateway_session_belongs_to_another_decider(ports: Ports) -> None:
    with pytest.raises(ValueError, match="belongs to no run"):
        await ports.deciding().expire(a_gateway_approval())

    ports.runs.change.assert_not_awaited()
