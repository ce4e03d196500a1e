"""Displayable calls: the run waits for its client, who settles them by results or by the next
message."""

import pytest

from application.models.ports import RequestedCall
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role as KeyRole
from domain.ids import ApiKeyId, ToolCallId
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.run import MultitaskStrategy, RunStatus
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text"), "bad": text_reply("no", is_error=True)})}


def shows(count: int = 1, *, text: str = "Shall I send this?", beside: tuple[RequestedCall, ...] = ()) -> ModelTurn:
    """A turn with `count` emails after the calls `beside` them."""
    return ModelTurn(text=text, calls=(*beside, *[call("send_email", EMAIL)] * count))


@pytest.mark.requirement("A2", "A3", "D5")
async def test_a_displayable_call_makes_the_run_wait_for_its_client() -> None:
    harness = RunHarness([shows()])
    run_id = await harness.play()
    run = harness.run(run_id)
    [entry] = harness.ledger(run_id)
    assert (run.status, run.output) == (RunStatus.REQUIRES_ACTION, "Shall I send this?")
    assert [(use.id, use.name, use.params) for use in run.pending] == [(entry.id, "send_email", EMAIL)]
    assert entry.state is ToolCallState.AWAITING_CLIENT
    assert harness.types(run_id)[-1] == "run.requires_action"
    [waiting] = harness.of_type(run_id, RunEventType.RUN_REQUIRES_ACTION)
    assert waiting == {"pending": [{"type": "tool_use", "id": entry.id, "name": "send_email", "params": EMAIL}]}
    assert harness.tracer.finished == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("D5")
async def test_executable_siblings_run_before_the_wait() -> None:
    harness = RunHarness([shows(beside=(call("mcp__s__read"), call("nowhere")))], servers=READ)
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert [entry.state for entry in harness.ledger(run_id)] == [
        ToolCallState.SETTLED,
        ToolCallState.SETTLED,
        ToolCallState.AWAITING_CLIENT,
    ]
    assert harness.roles() == ["user", "assistant"], "the tool message waits for all results of the turn"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A1", "A2", "D5")
async def test_results_of_the_client_let_the_run_go_on() -> None:
    harness = RunHarness([shows(beside=(call("mcp__s__read"),)), says("Sent.")], servers=READ)
    run_id = await harness.play()
    [pending] = harness.run(run_id).pending
    harness.queue.run_ids.clear()
    resumed = await harness.resume(run_id, {pending.id: {"sent": True}})
    assert (resumed.status, harness.queue.run_ids) == (RunStatus.QUEUED, [run_id])
    await harness.new_worker().execute(run_id)
    run = harness.run(run_id)
    assert (run.status, run.output, run.pending) == (RunStatus.COMPLETED, "Sent.", ())
    assert harness.results() == ["text", '{\n  "sent": true\n}']
    assert [m.role.value for m in harness.model.requests[1].messages] == ["user", "assistant", "tool"]
    types = harness.types(run_id)
    assert types[types.index("run.requires_action") :] == [
        "run.requires_action",
        "tool.executed",
        "run.resumed",
        "run.started",
        "message.completed",
        "turn.started",
        "message.delta",
        "message.completed",
        "run.completed",
    ]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("D5")
async def test_results_for_some_calls_keep_the_run_waiting_for_the_others() -> None:
    harness = RunHarness([shows(2), says()])
    run_id = await harness.play()
    first, second = harness.run(run_id).pending
    harness.queue.run_ids.clear()
    resumed = await harness.resume(run_id, {second.id: "sent"})
    assert (resumed.status, resumed.pending, harness.queue.run_ids) == (RunStatus.REQUIRES_ACTION, (first,), [])
    await harness.resume(run_id, {first.id: "refused"}, is_error=True)
    await harness.worker.execute(run_id)
    assert harness.results() == ["refused", "sent"]
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == ["client_tool_failed", None]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("D5")
async def test_results_are_taken_for_pending_calls_only_and_once() -> None:
    harness = RunHarness([shows(2, beside=(call("mcp__s__read"),))], servers=READ)
    run_id = await harness.play()
    first, _ = harness.run(run_id).pending
    executed = harness.ledger(run_id)[0].id
    await harness.resume(run_id, {first.id: "sent"})
    for call_id in (first.id, executed, ToolCallId("call_unknown")):
        with pytest.raises(ServiceError) as caught:
            await harness.resume(run_id, {call_id: "again"})
        assert caught.value.code == "tool_call_not_pending"
    with pytest.raises(ServiceError) as caught:
        await harness.resume(run_id, {})
    assert caught.value.code == "tool_results_invalid"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A6")
async def test_a_clients_result_is_cleaned_and_cut_like_any_other() -> None:
    harness = RunHarness([shows(), says()])
    run_id = await harness.play()
    [pending] = harness.run(run_id).pending
    await harness.resume(run_id, {pending.id: "a\x00b\ud800" + "x" * 70_000})
    await harness.worker.execute(run_id)
    [result] = harness.results()
    assert result.startswith("ab?xxx")
    assert len(result.encode()) < 64 * 1024 + 200


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("strategy", list(MultitaskStrategy))
async def test_the_next_user_message_settles_what_is_displayed_and_completes_the_run(
    strategy: MultitaskStrategy,
) -> None:
    harness = RunHarness([shows(beside=(call("mcp__s__read"),)), says("Good.")], servers=READ)
    waiting = await harness.play("Write to Ada.")
    second = await harness.start("Thanks, I sent it.", strategy=strategy)
    run = harness.run(waiting)
    assert (run.status, run.output) == (RunStatus.COMPLETED, "Shall I send this?")
    assert harness.results() == ["text", "Tool has been displayed successfully"]
    await harness.worker.execute(second)
    assert [m.text for m in harness.transcript() if m.text] == [
        "Write to Ada.",
        "Shall I send this?",
        "Thanks, I sent it.",
        "Good.",
    ]
    assert harness.roles() == ["user", "assistant", "tool", "user", "assistant"]
    assert_consistent(harness, waiting, second)


@pytest.mark.requirement("A12", "D5")
async def test_a_waiting_run_can_be_cancelled() -> None:
    harness = RunHarness([shows(2)])
    run_id = await harness.play()
    assert (await harness.cancel(run_id)).status is RunStatus.CANCELLED
    assert len(harness.results()) == 2
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7", "D5")
async def test_waiting_for_the_client_is_not_active_time() -> None:
    harness = RunHarness([shows(), says()])
    run_id = await harness.play()
    [pending] = harness.run(run_id).pending
    harness.clock.advance(100_000)
    await harness.resume(run_id, {pending.id: "sent"})
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.run(run_id).active_s == 0


@pytest.mark.requirement("A9", "D5")
async def test_a_displayable_call_with_wrong_arguments_is_not_shown() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", {"to": 1}),)), says()])
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == ["tool_arguments_invalid"]
    assert "subject" in harness.results()[0]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A8", "D5")
async def test_a_client_that_refuses_three_turns_in_a_row_ends_the_run_like_any_failing_tool() -> None:
    harness = RunHarness([shows()] * 3)
    run_id = await harness.play()
    for _ in range(3):
        [pending] = harness.run(run_id).pending
        await harness.resume(run_id, {pending.id: "refused"}, is_error=True)
        await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, "tool_repeatedly_failing")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C6")
async def test_a_runner_acts_on_its_own_runs_and_an_operator_on_all() -> None:
    runner = Principal(organization_id=ORG, key_id=ApiKeyId("key_runner"), role=KeyRole.RUNNER)
    harness = RunHarness([asks("send_email")])
    run_id = await harness.start()
    with pytest.raises(ServiceError) as caught:
        await harness.cancel(run_id, principal=runner)
    assert caught.value.kind is ErrorKind.FORBIDDEN
    own = await harness.start(principal=runner)
    assert (await harness.cancel(own, principal=runner)).status is RunStatus.CANCELLED
    assert (await harness.cancel(run_id)).status is RunStatus.CANCELLED
