"""MCP servers that ask for input in the middle of a call: the run waits, and the call goes again
with the answer."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, McpInputRequired, McpReply
from domain.errors import ErrorKind, ServiceError
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.elicitation import Elicitation
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

FORM: JsonObject = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
}
COLOUR = Elicitation(request_id="colour", message="Which colour?", schema=FORM)
SIGN_IN = Elicitation(request_id="sign-in", message="Sign in first.", url="https://example.org/sign-in")
RED: JsonObject = {"action": "accept", "content": {"colour": "red"}}


def asking(*questions: Elicitation, state: str | None = None, unsupported: tuple[str, ...] = ()) -> McpReply:
    required = McpInputRequired(questions=questions, request_state=state, unsupported=unsupported)
    return McpReply(is_error=False, content=(), input_required=required)


async def paint(invocation: Invocation) -> McpReply:
    """Asks for a colour, and wants its state back with the answer."""
    if invocation.input_responses is None:
        return asking(COLOUR, state="can #7")
    return text_reply(f"{invocation.request_state}: {invocation.input_responses['colour']}")


def a_harness(
    answer: Callable[[Invocation], Awaitable[McpReply]] | McpReply = paint,
    *turns: ModelTurn,
    policy: ElicitationPolicy = ElicitationPolicy.ASK,
    repeatable: bool = False,
    limits: LimitSettings | None = None,
) -> RunHarness:
    tools = {
        "paint": InMemoryTool(answer=answer, idempotent_hint=repeatable),
        "read": InMemoryTool(answer=text_reply("text")),
    }
    harness = RunHarness(
        turns or (asks("mcp__s__paint"), says("Painted.")),
        servers={"s": InMemoryMcpServer(tools=tools)},
        limits=limits,
    )
    harness.change_server("s", elicitation=policy, trusted=repeatable)
    return harness


def pending_id(harness: RunHarness, run_id: RunId) -> ToolCallId:
    return harness.ledger(run_id)[0].id


@pytest.mark.requirement("A2", "B4", "E3")
async def test_a_run_waits_for_the_answer_to_what_a_server_asks() -> None:
    harness = a_harness()
    run_id = await harness.play()
    run = harness.run(run_id)
    assert run.status is RunStatus.REQUIRES_ACTION
    [waiting] = harness.of_type(run_id, RunEventType.RUN_REQUIRES_ACTION)
    assert waiting == {
        "pending": [
            {
                "type": "tool_use",
                "id": pending_id(harness, run_id),
                "name": "mcp__s__paint",
                "params": {},
                "elicitation": {"request_id": "1.colour", "message": "Which colour?", "schema": FORM},
            }
        ]
    }
    [entry] = harness.ledger(run_id)
    assert entry.state is ToolCallState.AWAITING_INPUT
    assert entry.input is not None
    assert b"can #7" not in entry.input, "what the server keeps with us is encrypted"
    assert "tool.executed" not in harness.types(run_id)
    assert harness.tracer.finished == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A2", "B4", "E3")
async def test_the_call_goes_again_with_the_answer_and_what_the_server_kept() -> None:
    harness = a_harness()
    run_id = await harness.play()
    resumed = await harness.resume(run_id, {pending_id(harness, run_id): RED})
    assert (resumed.status, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == [f"can #7: {RED}"]
    first, again = (recorded.call for recorded in harness.connections.calls)
    assert (first.tool_name, first.arguments, first.meta) == (again.tool_name, again.arguments, again.meta)
    assert (first.accepts_input, first.input_responses, first.request_state) == (True, None, None)
    assert [entry.input for entry in harness.ledger(run_id)] == [None], "nothing of it is kept after the call"
    assert harness.actions(run_id).count("tool.executed") == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("D5")
async def test_siblings_run_before_the_wait_and_displayed_ones_are_waited_for_as_well() -> None:
    turn = ModelTurn(calls=(call("mcp__s__paint"), call("mcp__s__read"), call("send_email", EMAIL)))
    harness = a_harness(paint, turn, says("Done."))
    run_id = await harness.play()
    painted, _, email = (entry.id for entry in harness.ledger(run_id))
    assert [entry.state.value for entry in harness.ledger(run_id)] == ["awaiting_input", "settled", "awaiting_client"]
    await harness.resume(run_id, {painted: RED})
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert [use.id for use in harness.run(run_id).pending] == [email]
    assert (await harness.resume(run_id, {email: "sent"})).status is RunStatus.QUEUED
    await harness.worker.execute(run_id)
    assert harness.results() == [f"can #7: {RED}", "text", "sent"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("B4")
async def test_questions_of_one_round_are_asked_one_by_one_and_answered_together() -> None:
    async def answer(invocation: Invocation) -> McpReply:
        return text_reply(str(invocation.input_responses)) if invocation.input_responses else asking(COLOUR, SIGN_IN)

    harness = a_harness(answer)
    run_id = await harness.play()
    call_id = pending_id(harness, run_id)
    waiting = await harness.resume(run_id, {call_id: RED})
    assert waiting.status is RunStatus.REQUIRES_ACTION
    assert [use.elicitation and use.elicitation.url for use in waiting.pending] == [SIGN_IN.url]
    await harness.resume(run_id, {call_id: {"action": "accept", "request_id": "1.sign-in"}})
    await harness.worker.execute(run_id)
    assert harness.results() == [str({"colour": RED, "sign-in": {"action": "accept"}})]
    assert len(harness.connections.calls) == 2


@pytest.mark.requirement("B4")
async def test_a_server_may_ask_ten_times_and_not_more() -> None:
    async def insist(_: Invocation) -> McpReply:
        return asking(COLOUR)

    harness = a_harness(insist)
    run_id = await harness.play()
    for number in range(1, 11):
        [use] = harness.run(run_id).pending
        assert use.elicitation is not None
        assert use.elicitation.request_id == f"{number}.colour"
        await harness.resume(run_id, {use.id: RED})
        await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "mcp_input_endless"


@pytest.mark.requirement("B4")
async def test_a_server_that_only_wants_to_be_called_again_is_called_again() -> None:
    async def answer(invocation: Invocation) -> McpReply:
        return text_reply("done") if invocation.request_state == "later" else asking(state="later")

    harness = a_harness(answer, policy=ElicitationPolicy.DECLINE)
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == ["done"]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("asks_the_same", [True, False])
async def test_a_server_that_forgot_what_it_kept_is_called_anew_and_told_what_it_asks_again(
    asks_the_same: bool,
) -> None:
    lives = ["first", "second"]

    async def answer(invocation: Invocation) -> McpReply:
        if invocation.request_state is None:
            other = Elicitation(request_id="colour", message="Which colour now?", schema=FORM)
            return asking(COLOUR if asks_the_same or lives[0] == "first" else other, state=lives[0])
        if invocation.request_state != lives[0]:
            raise McpFailure(McpFailureKind.SERVER_ERROR, "Invalid or expired requestState", rpc_code=-32602)
        return await paint(invocation)

    harness = a_harness(answer)
    run_id = await harness.play()
    del lives[0]  # it was started again
    await harness.resume(run_id, {pending_id(harness, run_id): RED})
    await harness.worker.execute(run_id)
    if not asks_the_same:
        [use] = harness.run(run_id).pending
        assert use.elicitation is not None
        assert use.elicitation.message == "Which colour now?"
        await harness.resume(run_id, {use.id: RED})
        await harness.worker.execute(run_id)
    assert harness.results() == [f"second: {RED}"]


@pytest.mark.requirement("B15")
async def test_a_server_that_waits_for_an_answer_is_kept_until_the_run_goes_on() -> None:
    harness = a_harness()
    run_id = await harness.play()
    assert harness.connections.released == []
    await harness.resume(run_id, {pending_id(harness, run_id): RED})
    await harness.worker.execute(run_id)
    assert [released.run_id for released in harness.connections.released] == [run_id]


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("end", ["cancel", "cancel after an answer", "interrupt", "rollback"])
async def test_a_server_that_waits_for_an_answer_goes_when_its_run_ends_without_one(end: str) -> None:
    harness = a_harness()
    run_id = await harness.play()
    if end == "cancel after an answer":
        await harness.resume(run_id, {pending_id(harness, run_id): RED})
    if end.startswith("cancel"):
        await harness.cancel(run_id)
    else:
        await harness.start("Never mind.", strategy=MultitaskStrategy(end))
    assert harness.run(run_id).status is RunStatus.CANCELLED
    assert [released.run_id for released in harness.connections.released] == [run_id]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_server_that_did_not_wait_is_called_anew_only_if_the_tool_may_be_repeated(repeatable: bool) -> None:
    async def answer(invocation: Invocation) -> McpReply:
        if invocation.input_responses is not None:
            return text_reply(str(invocation.input_responses))
        required = McpInputRequired(questions=(COLOUR,), ended=True)
        return replace(text_reply("left white", is_error=True), input_required=required)

    harness = a_harness(answer, repeatable=repeatable)
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    if repeatable:
        await harness.resume(run_id, {entry.id: RED})
        await harness.worker.execute(run_id)
        assert harness.results() == [str({"colour": RED})]
    else:
        assert harness.run(run_id).status is RunStatus.COMPLETED
        assert entry.result is not None
        assert entry.result.error_code == "mcp_input_undeliverable"
        assert "Which colour?" in entry.result.text
        assert "left white" in entry.result.text


@pytest.mark.requirement("B4")
async def test_without_a_policy_nobody_is_asked_and_the_model_learns_what_the_question_was() -> None:
    harness = a_harness(policy=ElicitationPolicy.DECLINE)
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert [recorded.call.accepts_input for recorded in harness.connections.calls] == [False]
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "mcp_input_declined"
    assert "Which colour?" in harness.results()[0]


@pytest.mark.requirement("B4")
async def test_sampling_and_roots_are_declined_whatever_the_policy() -> None:
    harness = a_harness(asking(COLOUR, unsupported=("sampling/createMessage",)))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "mcp_input_declined"
    assert "sampling/createMessage" in entry.result.text


async def test_a_form_that_cannot_be_used_is_not_shown() -> None:
    remote: JsonObject = {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}
    harness = a_harness(asking(Elicitation(request_id="a", message="?", schema=remote)))
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "mcp_invalid_reply"


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        ("red", "result"),
        ({"action": "agree"}, "result.action"),
        ({"action": "accept"}, "result.content"),
        ({"action": "accept", "content": {"colour": "green"}}, "result.content"),
        ({"action": "accept", "content": {"colour": "red"}, "request_id": "2.colour"}, "result.request_id"),
        ({"action": "decline", "content": {"colour": "red"}}, "result.content"),
        ({"action": "cancel", "reason": "none"}, "result.reason"),
        ({"action": "accept", "content": {"colour": "red", "more": "x" * 70_000}}, "result.content"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_changes_nothing(answer: JsonValue, path: str) -> None:
    harness = a_harness()
    run_id = await harness.play()
    before, entry = harness.run(run_id), harness.ledger(run_id)[0]
    with pytest.raises(ServiceError) as refused:
        await harness.resume(run_id, {entry.id: answer})
    assert (refused.value.code, refused.value.kind) == ("elicitation_answer_invalid", ErrorKind.INVALID)
    assert {violation.path for violation in refused.value.violations} == {f"tool_results.0.{path}"}
    assert (harness.run(run_id), harness.ledger(run_id)[0]) == (before, entry)


async def test_an_answer_is_no_failure_of_a_tool() -> None:
    harness = a_harness()
    run_id = await harness.play()
    with pytest.raises(ServiceError) as refused:
        await harness.resume(run_id, {pending_id(harness, run_id): RED}, is_error=True)
    assert [violation.path for violation in refused.value.violations] == ["tool_results.0.is_error"]


async def test_a_stranger_among_answers_is_named_by_its_place() -> None:
    harness = a_harness()
    run_id = await harness.play()
    with pytest.raises(ServiceError) as refused:
        await harness.resume(run_id, {pending_id(harness, run_id): RED, ToolCallId("call_x"): "sent"})
    assert refused.value.code == "tool_call_not_pending"
    assert [violation.path for violation in refused.value.violations] == ["tool_results.1.tool_call_id"]


@pytest.mark.requirement("A12")
async def test_a_run_that_waits_for_an_answer_can_be_cancelled() -> None:
    harness = a_harness()
    run_id = await harness.play()
    await harness.cancel(run_id)
    assert harness.run(run_id).status is RunStatus.CANCELLED
    [entry] = harness.ledger(run_id)
    assert (entry.state, entry.input, entry.elicitation) == (ToolCallState.SETTLED, None, None)
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_crash_after_the_call_went_again_is_a_lost_outcome_unless_it_is_repeatable(repeatable: bool) -> None:
    crashes = [True]

    async def answer(invocation: Invocation) -> McpReply:
        if invocation.input_responses is not None and crashes:
            crashes.clear()
            raise KeyboardInterrupt  # a worker that dies
        return await paint(invocation)

    harness = a_harness(answer, repeatable=repeatable)
    run_id = await harness.play()
    await harness.resume(run_id, {pending_id(harness, run_id): RED})
    dying = harness.new_worker()
    with pytest.raises(KeyboardInterrupt):
        await dying.execute(run_id)
    assert [entry.state for entry in harness.ledger(run_id)] == [ToolCallState.RECORDED]
    assert await harness.recover() == 1
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert len(harness.connections.calls) == (3 if repeatable else 2)
    expected = f"can #7: {RED}" if repeatable else "The outcome of this call is unknown"
    assert harness.results()[0].startswith(expected)


@pytest.mark.requirement("E3")
async def test_a_crash_before_the_call_went_again_loses_nothing() -> None:
    harness = a_harness()
    run_id = await harness.play()
    await harness.resume(run_id, {pending_id(harness, run_id): RED})
    claimed = await harness.leases.claim(
        run_id, harness.worker.active_runs.worker_id, lease_s=1, at=harness.clock.now()
    )
    assert claimed is not None
    assert await harness.recover() == 1
    await harness.new_worker().execute(run_id)
    assert harness.results() == [f"can #7: {RED}"]


@pytest.mark.requirement("B12")
async def test_answers_under_a_key_that_is_gone_are_said_to_be_lost() -> None:
    harness = a_harness()
    run_id = await harness.play()
    await harness.resume(run_id, {pending_id(harness, run_id): RED})
    harness.box.use(["another key"])
    await harness.worker.execute(run_id)
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "mcp_input_lost"
    assert len(harness.connections.calls) == 1
