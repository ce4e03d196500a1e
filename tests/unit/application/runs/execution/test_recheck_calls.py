"""RecheckCalls: what becomes of calls that an earlier worker left open, before any of them is
sent."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.execution.recheck_calls import RecheckCalls
from application.runs.ports import LeaseLost, RunJournal
from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset import Toolset
from application.tracing.ports import Tracer
from domain.approvals.approval import approval_digest
from domain.audit.event import AuditAction
from domain.json_value import JsonObject
from domain.policy.layers import ApprovalTerms
from domain.policy.rules import OnBlock, OnUnknownOutcome, ToolRule, Verdict
from domain.runs.approvals import approval_request
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import RunStatus
from domain.tools.capabilities import ToolType
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import RUN, a_displayable_call, a_tool, a_tool_call, an_agent
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.run_builders import ASKS, DENIES, ECHO, a_claimed_run, a_session, a_state_with_run, a_toolset

REPEATABLE = a_toolset(a_tool(repeatable=True))
DENIED = a_toolset(denied=(a_tool(),), rules=DENIES)
SENT = a_tool_call(repeatable=False)
SENT_REPEATABLE = a_tool_call(repeatable=True)


def approved(version: int = 1, *, outcome_unknown: bool = False) -> ToolCall:
    """A call that was approved for this version of the agent and is not sent yet."""
    call = a_tool_call(state=ToolCallState.APPROVED)
    asked = approval_request(
        call,
        agent_version=version,
        reason="because",
        terms=ApprovalTerms(ttl_s=60),
        outcome_unknown=outcome_unknown,
    )
    return replace(call, approval=asked)


class Ports:
    """A claimed run in memory, of an agent at version 1."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)

    async def decide(
        self, *calls: ToolCall, toolset: Toolset | None = None, journal: RunJournal | None = None
    ) -> ToolCall:
        """The first call as it is stored after the decision."""
        run = a_claimed_run()
        self.state = a_state_with_run(run, *calls)
        session = a_session(*calls, run=run, agent=an_agent(), state=self.state, journal=journal, tracer=self.tracer)
        deciding = RecheckCalls(check=CheckToolCall(schemas=JsonSchemaValidator()), clock=FixedClock())
        await deciding.execute(session, toolset or a_toolset())
        assert session.open_calls == self.state.runs[RUN].calls or session.open_calls == {}
        return self.state.runs[RUN].calls[calls[0].id]

    @property
    def events(self) -> list[RunEventType]:
        return [event.type for event in self.state.runs[RUN].events]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def code_of(call: ToolCall) -> str | None:
    assert call.result is not None
    return call.result.error_code


# --- approvals ---


@pytest.mark.requirement("C3", "E3")
async def test_an_approval_for_the_same_call_and_version_stays_valid(ports: Ports, mocker: MockerFixture) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)

    await ports.decide(approved(), toolset=a_toolset(rules=ASKS), journal=journal)

    journal.commit.assert_not_awaited()


@pytest.mark.requirement("C3")
async def test_a_call_whose_agent_has_changed_since_its_approval_needs_a_new_one(ports: Ports) -> None:
    before = approved(version=7)

    call = await ports.decide(before, toolset=a_toolset(rules=ASKS))

    assert call.state is ToolCallState.AWAITING_APPROVAL
    assert before.approval is not None
    assert call.approval is not None
    assert call.approval.id != before.approval.id
    assert call.approval.digest == approval_digest(call.name, call.params, 1)


@pytest.mark.requirement("C3")
async def test_a_call_that_policy_lowers_since_its_approval_needs_a_new_one(ports: Ports) -> None:
    parameters: JsonObject = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    asked = replace(approved(), params={"limit": 50})
    assert asked.approval is not None
    asked = replace(asked, approval=replace(asked.approval, digest=approval_digest(asked.name, asked.params, 1)))
    rules = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, max_results=5)}

    call = await ports.decide(asked, toolset=a_toolset(a_tool(parameters=parameters), rules=rules))

    assert (call.state, call.params) == (ToolCallState.AWAITING_APPROVAL, {"limit": 5})


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("call", "toolset", "state"),
    [
        (a_tool_call(state=ToolCallState.UNDECIDED), a_toolset(), ToolCallState.APPROVED),
        (a_tool_call(state=ToolCallState.UNDECIDED), a_toolset(rules=ASKS), ToolCallState.AWAITING_APPROVAL),
        (
            replace(a_displayable_call(), state=ToolCallState.UNDECIDED),
            a_toolset(a_tool("send_email", type=ToolType.SEND_EMAIL, parameters={"type": "object"})),
            ToolCallState.AWAITING_CLIENT,
        ),
    ],
    ids=["allowed", "approval required", "displayed"],
)
async def test_a_call_without_a_valid_decision_is_decided_like_a_new_one(
    ports: Ports, call: ToolCall, toolset: Toolset, state: ToolCallState
) -> None:
    assert (await ports.decide(call, toolset=toolset)).state is state


# --- what policy blocks by now ---


@pytest.mark.requirement("C2", "C3", "C5")
async def test_an_approved_call_that_policy_denies_by_now_is_blocked_and_audited(ports: Ports) -> None:
    call = await ports.decide(approved(), toolset=DENIED)

    assert code_of(call) == "tool_denied"
    assert ports.events == [RunEventType.TOOL_BLOCKED]
    assert [entry.action for entry in ports.state.audit.values()] == [AuditAction.TOOL_BLOCKED]


@pytest.mark.requirement("C1", "E3")
@pytest.mark.parametrize(
    "call", [SENT, SENT_REPEATABLE, approved(outcome_unknown=True)], ids=["sent", "repeatable", "again"]
)
async def test_a_call_that_may_have_been_sent_and_is_denied_by_now_has_an_unknown_outcome(
    ports: Ports, call: ToolCall
) -> None:
    assert code_of(await ports.decide(call, toolset=DENIED)) == "outcome_unknown"


@pytest.mark.requirement("C2")
async def test_a_call_for_which_policy_halts_by_now_ends_the_run_and_every_call_has_its_result(ports: Ports) -> None:
    rules = {ECHO: ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT)}
    sibling = a_tool_call(1, name="mcp__files__read", state=ToolCallState.APPROVED)
    perhaps_sent = a_tool_call(2, name="mcp__files__read")
    toolset = a_toolset(a_tool("mcp__files__read", repeatable=True), denied=(a_tool(),), rules=rules)

    await ports.decide(approved(), sibling, replace(perhaps_sent, repeatable=True), toolset=toolset)

    stored = ports.state.runs[RUN]
    assert stored.run.status is RunStatus.HALTED
    assert [code_of(call) for call in stored.calls.values()] == ["tool_denied", "run_halted", "outcome_unknown"]


# --- calls that may have been sent ---


@pytest.mark.requirement("E3")
async def test_a_repeatable_call_is_sent_again(ports: Ports, mocker: MockerFixture) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)

    await ports.decide(SENT_REPEATABLE, toolset=REPEATABLE, journal=journal)

    journal.commit.assert_not_awaited()


@pytest.mark.requirement("E3")
@pytest.mark.parametrize(
    ("call", "toolset"), [(SENT, REPEATABLE), (SENT_REPEATABLE, a_toolset())], ids=["was not", "is no more"]
)
async def test_a_call_that_was_or_is_not_repeatable_has_an_unknown_outcome(
    ports: Ports, call: ToolCall, toolset: Toolset
) -> None:
    settled = await ports.decide(call, toolset=toolset)

    assert (settled.state, code_of(settled)) == (ToolCallState.SETTLED, "outcome_unknown")


@pytest.mark.requirement("C3", "E3")
async def test_by_policy_a_person_decides_whether_a_call_is_sent_again(ports: Ports) -> None:
    rules = {ECHO: ToolRule(on_unknown_outcome=OnUnknownOutcome.REQUIRE_APPROVAL, approval_ttl_s=60)}

    call = await ports.decide(SENT, toolset=a_toolset(rules=rules))

    assert call.state is ToolCallState.AWAITING_APPROVAL
    assert call.approval is not None
    assert (call.approval.outcome_unknown, call.approval.ttl_s) == (True, 60)


@pytest.mark.requirement("C3", "E3")
async def test_a_call_that_a_person_has_approved_to_be_sent_again_is_sent(ports: Ports, mocker: MockerFixture) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)

    await ports.decide(approved(outcome_unknown=True), journal=journal)

    journal.commit.assert_not_awaited()


@pytest.mark.requirement("C1", "E3")
async def test_a_repeatable_call_that_needs_an_approval_by_now_waits_for_it(ports: Ports) -> None:
    call = await ports.decide(SENT_REPEATABLE, toolset=a_toolset(a_tool(repeatable=True), rules=ASKS))

    assert call.state is ToolCallState.AWAITING_APPROVAL
    assert call.approval is not None
    assert call.approval.outcome_unknown is True


# --- one step ---


@pytest.mark.requirement("E3")
async def test_all_decisions_are_one_step_and_a_call_that_waits_for_its_client_stays_as_it_is(
    ports: Ports, mocker: MockerFixture
) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = LeaseLost(RUN)
    stale = replace(approved(version=7), id=a_tool_call(1).id, index=1)

    with pytest.raises(LeaseLost):
        await ports.decide(SENT, stale, a_displayable_call(2), toolset=a_toolset(rules=ASKS), journal=journal)

    [(_, step)] = [call.args for call in journal.commit.await_args_list]
    assert [call.id for call in step.settled] == [SENT.id]
    assert [call.id for call in step.changed] == [stale.id]


@pytest.mark.requirement("X5", "A2")
@pytest.mark.parametrize(
    ("continues", "kept", "state"),
    [
        (True, b"sealed", ToolCallState.RECORDED),
        (True, None, ToolCallState.SETTLED),
        (False, b"sealed", ToolCallState.SETTLED),
    ],
    ids=["a recorded task", "a message without an answer", "another server"],
)
async def test_the_recorded_task_of_a_remote_agent_is_continued(
    ports: Ports, continues: bool, kept: bytes | None, state: ToolCallState
) -> None:
    tool = a_tool()
    assert tool.mcp is not None
    toolset = a_toolset(replace(tool, mcp=replace(tool.mcp, continues=continues)))

    call = await ports.decide(replace(SENT, input=kept), toolset=toolset)

    assert call.state is state
    assert state is ToolCallState.RECORDED or code_of(call) == "outcome_unknown"
