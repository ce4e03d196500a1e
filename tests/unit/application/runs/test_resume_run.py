"""ResumeRun: which results, answers and decisions are taken, by whom; when the run is submitted."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.approvals.check_decisions import CheckDecisions, CheckedDecisions
from application.policy.ports import SchemaValidator
from application.runs.ports import RunQueue, RunStore
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.runs.sealed_input import sealed, unsealed
from domain.approvals.approval import ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonValue
from domain.mcp.elicitation import Elicitation, InputRound
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolResult
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.approval_builders import awaiting_approval_call
from tests.builders import KEY, RUN, START, a_displayable_call, a_tool_call, a_tool_use
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import (
    CANARY,
    a_claimed_run,
    a_guarded_agent,
    a_state_with_run,
    a_use_awaiting,
    a_waiting_run,
    approval_of,
)
from tests.unit.application.actors import a_principal

BOX = SecretBox(["a key of the tests"])
REQUESTER = replace(a_principal(Role.RUNNER), key_id=KEY)
OPERATOR = a_principal(Role.OPERATOR)
FIRST, SECOND = a_displayable_call(0), a_displayable_call(1)
QUESTION = Elicitation(
    request_id="where",
    message="Where to?",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
WAITED_FOR = InputRound(number=1, questions=(QUESTION,), request_state="kept")
ASKING = replace(
    a_tool_call(),
    state=ToolCallState.AWAITING_INPUT,
    elicitation=WAITED_FOR.current,
    input=sealed(WAITED_FOR, BOX),
)
TO_APPROVE = awaiting_approval_call()
APPROVAL = approval_of(TO_APPROVE)


class Ports:
    """A waiting run in memory, and mocks of what else `ResumeRun` calls."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.wait_for(FIRST)
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.decisions: MockType = mocker.create_autospec(CheckDecisions, instance=True)
        self.decisions.execute.return_value = CheckedDecisions()
        self.decisions.taken.side_effect = lambda _, checked, at: checked.outcomes
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.get.return_value = a_guarded_agent()
        self.schemas: SchemaValidator = JsonSchemaValidator()

    def wait_for(self, *calls: ToolCall) -> None:
        uses = (replace(a_tool_use(call), elicitation=call.elicitation) for call in calls)
        self.use_state(a_state_with_run(a_waiting_run(*uses), *calls))

    def wait_for_approval(self) -> None:
        self.use_state(a_state_with_run(a_waiting_run(a_use_awaiting(APPROVAL)), TO_APPROVE))
        self.state.approvals[APPROVAL.id] = APPROVAL

    def use_state(self, state: InMemoryState) -> None:
        self.state = state
        self.reader = self.runs = InMemoryRunStore(state, InProcessWakeups())

    async def resume(
        self, *results: ClientToolResult, by: Principal = REQUESTER, approvals: tuple[CallDecision, ...] = ()
    ) -> Run:
        resuming = ResumeRun(
            runs=self.runs,
            reader=self.reader,
            queue=self.queue,
            decisions=self.decisions,
            agents=self.agents,
            servers=InMemoryMcpServerStore(self.state),
            schemas=self.schemas,
            box=BOX,
            clock=FixedClock(),
        )
        return await resuming.execute(
            ResumeRunCommand(principal=by, run_id=RUN, tool_results=results, approvals=approvals)
        )

    def call(self, call: ToolCall) -> ToolCall:
        return self.state.runs[RUN].calls[call.id]

    def assert_nothing_is_taken(self) -> None:
        stored = self.state.runs[RUN]
        assert stored.run.status is RunStatus.REQUIRES_ACTION
        assert all(call.state.is_waiting for call in stored.calls.values())
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def result_of(call: ToolCall = FIRST, result: JsonValue = "sent", *, is_error: bool = False) -> ClientToolResult:
    return ClientToolResult(tool_call_id=call.id, result=result, is_error=is_error)


def an_answer(city: str = "Oslo") -> ClientToolResult:
    return result_of(ASKING, {"action": "accept", "content": {"city": city}})


def a_decision(call: ToolCall = TO_APPROVE) -> CallDecision:
    return CallDecision(tool_call_id=call.id, approve=True)


def an_outcome(state: ApprovalState) -> ApprovalOutcome:
    return ApprovalOutcome(approval_id=APPROVAL.id, state=state, at=START, by=OPERATOR.key_id)


@pytest.mark.requirement("A1", "D5")
async def test_the_last_result_submits_the_run(ports: Ports) -> None:
    resumed = await ports.resume(result_of())

    assert (resumed.status, resumed.pending) == (RunStatus.QUEUED, ())
    assert (ports.call(FIRST).state, ports.call(FIRST).result) == (ToolCallState.SETTLED, ToolResult.succeeded("sent"))
    ports.queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("D5")
async def test_a_run_waits_until_every_pending_call_has_its_result(ports: Ports) -> None:
    ports.wait_for(FIRST, SECOND)

    resumed = await ports.resume(result_of(SECOND))

    assert (resumed.status, [use.id for use in resumed.pending]) == (RunStatus.REQUIRES_ACTION, [FIRST.id])
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("A6", "D5")
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (result_of(result={"id": 7}), ToolResult.succeeded('{\n  "id": 7\n}')),
        (result_of(result="No network.", is_error=True), ToolResult.failed("client_tool_failed", "No network.")),
        (
            result_of(result="", is_error=True),
            ToolResult.failed("client_tool_failed", "The client reported a failure."),
        ),
    ],
    ids=["JSON", "failure", "failure without a text"],
)
async def test_a_result_is_stored_as_the_text_that_the_model_reads(
    ports: Ports, given: ClientToolResult, stored: ToolResult
) -> None:
    await ports.resume(given)

    assert ports.call(FIRST).result == stored


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_a_result_is_replaced_by_its_mark(ports: Ports) -> None:
    await ports.resume(result_of(result=f"I saw {CANARY}."))

    assert ports.call(FIRST).result == ToolResult.succeeded("I saw [canary:vault].")


@pytest.mark.requirement("D5")
async def test_results_for_calls_that_are_not_pending_are_refused_by_their_place(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.resume(result_of(), result_of(SECOND))

    assert (raised.value.code, raised.value.kind) == ("tool_call_not_pending", ErrorKind.INVALID)
    assert [wrong.path for wrong in raised.value.violations] == ["tool_results.1.tool_call_id"]
    ports.assert_nothing_is_taken()


@pytest.mark.requirement("C3", "D5")
async def test_a_call_that_waits_for_an_approval_takes_no_result(ports: Ports) -> None:
    ports.wait_for_approval()

    with refused("tool_call_not_pending"):
        await ports.resume(result_of(TO_APPROVE))

    ports.assert_nothing_is_taken()


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("results", [(), (result_of(), result_of())], ids=["none", "twice"])
async def test_a_resume_names_each_of_its_calls_once(ports: Ports, results: tuple[ClientToolResult, ...]) -> None:
    with refused("tool_results_invalid"):
        await ports.resume(*results)

    ports.assert_nothing_is_taken()


async def test_a_call_takes_a_result_or_a_decision_and_not_both(ports: Ports) -> None:
    with refused("tool_results_invalid"):
        await ports.resume(result_of(), by=OPERATOR, approvals=(a_decision(FIRST),))

    ports.assert_nothing_is_taken()


async def test_a_run_that_does_not_wait_is_a_conflict(ports: Ports) -> None:
    ports.use_state(a_state_with_run(a_claimed_run()))

    with refused("run_not_waiting"):
        await ports.resume(result_of())


# --- who ---


@pytest.mark.requirement("C6")
async def test_an_operator_resumes_the_run_of_another_key(ports: Ports) -> None:
    assert (await ports.resume(result_of(), by=OPERATOR)).status is RunStatus.QUEUED

    assert {entry.actor for entry in ports.state.audit.values()} == {OPERATOR.key_id}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("role", "code"), [(Role.RUNNER, "run_not_yours"), (Role.VIEWER, "role_insufficient")], ids=str
)
async def test_a_key_that_may_not_resume_the_run_changes_nothing(ports: Ports, role: Role, code: str) -> None:
    with refused(code):
        await ports.resume(result_of(), by=a_principal(role))

    ports.assert_nothing_is_taken()


@pytest.mark.requirement("C3")
async def test_the_runner_that_started_the_run_decides_no_approval_of_it(ports: Ports) -> None:
    ports.wait_for_approval()

    with refused("role_insufficient"):
        await ports.resume(approvals=(a_decision(),))

    ports.decisions.execute.assert_not_awaited()
    ports.assert_nothing_is_taken()


@pytest.mark.requirement("C6")
async def test_a_run_that_the_organization_does_not_have_is_not_found(ports: Ports) -> None:
    ports.use_state(InMemoryState())

    with refused("run_not_found"):
        await ports.resume(result_of())


# --- answers to servers ---


@pytest.mark.requirement("B4")
async def test_an_answer_is_stored_sealed_for_the_server_and_submits_the_run(ports: Ports) -> None:
    ports.wait_for(ASKING)

    assert (await ports.resume(an_answer())).status is RunStatus.QUEUED

    call = ports.call(ASKING)
    assert call.state is ToolCallState.INPUT_GIVEN
    assert call.input is not None
    assert b"Oslo" not in call.input
    answered = unsealed(call.input, BOX)
    assert answered.answers == {"where": {"action": "accept", "content": {"city": "Oslo"}}}
    assert answered.request_state == "kept"


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    ("given", "path"),
    [
        (result_of(ASKING, {"action": "accept", "content": {"city": 7}}), "tool_results.0.result.content"),
        (result_of(ASKING, "Oslo"), "tool_results.0.result"),
        (replace(an_answer(), is_error=True), "tool_results.0.is_error"),
    ],
    ids=["schema", "no action", "an error"],
)
async def test_an_answer_that_does_not_fit_the_question_is_refused(
    ports: Ports, given: ClientToolResult, path: str
) -> None:
    ports.wait_for(ASKING)

    with pytest.raises(ServiceError) as raised:
        await ports.resume(given)

    assert raised.value.code == "elicitation_answer_invalid"
    assert [wrong.path for wrong in raised.value.violations] == [path]
    ports.assert_nothing_is_taken()


@pytest.mark.requirement("B4", "C4")
async def test_an_answer_with_a_canary_token_is_refused(ports: Ports) -> None:
    ports.wait_for(ASKING)

    with refused("elicitation_answer_invalid"):
        await ports.resume(an_answer(CANARY))

    ports.assert_nothing_is_taken()


@pytest.mark.requirement("B4", "D5")
async def test_results_and_answers_are_taken_together_or_not_at_all(ports: Ports) -> None:
    ports.wait_for(ASKING, SECOND)

    with refused("elicitation_answer_invalid"):
        await ports.resume(result_of(SECOND), result_of(ASKING, {"action": "maybe"}))
    ports.assert_nothing_is_taken()

    assert (await ports.resume(result_of(SECOND), an_answer())).status is RunStatus.QUEUED


# --- decisions ---


@pytest.mark.requirement("C3")
async def test_checked_decisions_are_stored_and_submit_the_run(ports: Ports) -> None:
    ports.wait_for_approval()
    ports.decisions.execute.return_value = CheckedDecisions(outcomes=(an_outcome(ApprovalState.APPROVED),))

    assert (await ports.resume(by=OPERATOR, approvals=(a_decision(),))).status is RunStatus.QUEUED

    assert ports.call(TO_APPROVE).state is ToolCallState.APPROVED
    assert ports.state.approvals[APPROVAL.id].state is ApprovalState.APPROVED
    ports.queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("C3")
async def test_a_refused_decision_takes_no_result_either(ports: Ports) -> None:
    ports.decisions.execute.side_effect = conflict("approval_decided", "The approval has ended.")

    with refused("approval_decided"):
        await ports.resume(result_of(), by=OPERATOR, approvals=(a_decision(SECOND),))

    ports.assert_nothing_is_taken()


@pytest.mark.requirement("C3")
async def test_a_stale_approval_is_refused_and_submits_the_run_for_a_new_decision(ports: Ports) -> None:
    ports.wait_for_approval()
    ports.decisions.execute.return_value = CheckedDecisions(
        outcomes=(an_outcome(ApprovalState.STALE),), stale=APPROVAL.id
    )

    with refused("approval_stale"):
        await ports.resume(by=OPERATOR, approvals=(a_decision(),))

    assert ports.call(TO_APPROVE).state is ToolCallState.UNDECIDED
    assert ports.state.runs[RUN].run.status is RunStatus.QUEUED
    ports.queue.submit.assert_awaited_once_with(RUN)


# --- ports that fail ---


async def test_the_results_of_a_deleted_agents_run_are_taken(ports: Ports) -> None:
    ports.agents.get.return_value = None

    assert (await ports.resume(result_of())).status is RunStatus.QUEUED


@pytest.mark.parametrize("failing", ["decisions.execute", "agents.get"])
async def test_a_port_that_fails_before_the_results_are_stored_changes_nothing(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.resume(result_of())

    ports.assert_nothing_is_taken()


@pytest.mark.requirement("E1")
async def test_results_that_cannot_be_stored_submit_nothing(ports: Ports, mocker: MockerFixture) -> None:
    ports.runs = runs = mocker.create_autospec(RunStore, instance=True)
    runs.change.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.resume(result_of())

    ports.queue.submit.assert_not_awaited()
