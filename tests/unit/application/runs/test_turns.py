"""The turns of a run: what is asked of the model, what is stored and published, and in which
order."""

from functools import partial

import pytest

from application.models.ports import ModelError, ModelRetrying, TextDelta, ToolChoice
from domain.ids import message_id
from domain.runs.events import RunEventType
from domain.runs.run import RunStatus
from domain.runs.usage import ModelUsage
from domain.threads.message import ImageContent, Role, TextContent
from domain.tools.capabilities import ToolType
from tests.builders import AGENT, KEY, THREAD, an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import InMemoryNativeTool, asks, call, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

FILES = {"files": InMemoryMcpServer(tools={"read": text_reply("the file's text"), "list": text_reply("a, b")})}


@pytest.mark.requirement("A1", "A2", "E1")
async def test_a_reply_without_calls_completes_the_run() -> None:
    harness = RunHarness([says("It is noon.")])
    run_id = await harness.play("What time is it?")
    run = harness.run(run_id)
    assert (run.status, run.output, run.attempt) == (RunStatus.COMPLETED, "It is noon.", 1)
    assert (run.thread_id, run.agent_id, run.requested_by) == (THREAD, AGENT, KEY)
    assert [(m.role, m.text, m.run_id) for m in harness.transcript()] == [
        (Role.USER, "What time is it?", run_id),
        (Role.ASSISTANT, "It is noon.", run_id),
    ]
    assert harness.types(run_id) == [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "message.delta",
        "message.completed",
        "run.completed",
    ]
    assert harness.actions(run_id) == ["run.started", "run.completed"]
    assert [finished.id for finished in harness.tracer.finished] == [run_id]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A1")
async def test_images_of_the_input_reach_the_model() -> None:
    picture = ImageContent(media_type="image/png", data="aGk=")
    harness = RunHarness([says()])
    await harness.play((TextContent(text="What is this?"), picture))
    assert harness.model.requests[0].messages[-1].content == (TextContent(text="What is this?"), picture)


@pytest.mark.requirement("A2", "A4", "E3", "C5", "G1")
async def test_a_turn_stores_reply_then_results_and_then_asks_again() -> None:
    harness = RunHarness([asks("mcp__files__read", text="Let me look."), says("It says hello.")], servers=FILES)
    run_id = await harness.play()
    assert harness.roles() == ["user", "assistant", "tool", "assistant"]
    assert harness.results() == ["the file's text"]
    assert harness.types(run_id) == [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "message.delta",
        "message.completed",
        "tool.started",
        "tool.executed",
        "message.completed",
        "turn.started",
        "message.delta",
        "message.completed",
        "run.completed",
    ]
    assert [data["turn"] for data in harness.of_type(run_id, RunEventType.TURN_STARTED)] == [1, 2]
    [executed] = harness.of_type(run_id, RunEventType.TOOL_EXECUTED)
    assert (executed["name"], executed["server"]) == ("mcp__files__read", "files")
    [entry] = harness.ledger(run_id)
    assert (entry.server_id, entry.type) == (harness.server("files").id, ToolType.MCP_TOOL)
    audited = next(event for event in harness.audit(run_id) if event.action.value == "tool.executed")
    assert (audited.tool, audited.server_id) == ("mcp__files__read", harness.server("files").id)
    assert audited.arguments_digest is not None
    assert [record.call.id for record in harness.tracer.tool_calls] == [entry.id]
    assert [record.turn for record in harness.tracer.generations] == [1, 2]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A2")
async def test_the_model_sees_every_result_before_it_is_asked_again() -> None:
    harness = RunHarness(
        [asks("mcp__files__list"), asks("mcp__files__read"), asks("mcp__files__read"), says()], servers=FILES
    )
    run_id = await harness.play()
    asked = [[message.role.value for message in request.messages] for request in harness.model.requests]
    assert asked == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool", "assistant", "tool"],
    ]
    assert [request.turn for request in harness.model.requests] == [1, 2, 3, 4]
    assert {request.tool_choice for request in harness.model.requests} == {ToolChoice.AUTO}
    assert harness.run(run_id).usage.turns == 4
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A2")
async def test_what_was_said_on_the_thread_before_is_part_of_the_request() -> None:
    harness = RunHarness([says("Hello Ada."), says("Ada.")])
    await harness.play("I am Ada.")
    run_id = await harness.play("Who am I?")
    assert [m.text for m in harness.model.requests[1].messages] == ["I am Ada.", "Hello Ada.", "Who am I?"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A2", "E2")
async def test_deltas_carry_the_id_of_the_message_they_become() -> None:
    turn = ModelTurn(text="ends here", events=(TextDelta(text="It "),))
    harness = RunHarness([turn])
    run_id = await harness.play()
    [delta] = harness.of_type(run_id, RunEventType.MESSAGE_DELTA)
    assert delta == {"message_id": harness.transcript()[-1].id, "text": "It ends here"}


@pytest.mark.requirement("A4", "A5")
async def test_mcp_and_native_tools_mix_in_one_turn_and_answers_keep_the_models_order() -> None:
    code = InMemoryNativeTool({"answer": 42})
    harness = RunHarness(
        [asks("mcp__files__read", "code_execution", "nowhere", "mcp__files__list"), says()],
        servers=FILES,
        native=[code],
    )
    run_id = await harness.play()
    assert harness.results() == [
        "the file's text",
        '{\n  "answer": 42\n}',
        "A tool with the name nowhere was not found. Only use tools that are available in your given list of tools.",
        "a, b",
    ]
    assert [entry.type for entry in harness.ledger(run_id)] == [
        ToolType.MCP_TOOL,
        ToolType.CODE_EXECUTION,
        None,
        ToolType.MCP_TOOL,
    ]
    assert harness.run(run_id).usage.tool_calls == 3, "a call that is refused is not one that was made"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A4", "C2")
async def test_a_tool_outside_the_allowlist_is_neither_shown_nor_executed() -> None:
    harness = RunHarness([asks("mcp__files__read", "mcp__files__list"), says()], servers=FILES)
    await harness.warm_up()
    run_id = await harness.start(tool_allowlist=("mcp__files__l*",))
    await harness.worker.execute(run_id)
    assert [tool.name for tool in harness.model.requests[0].tools] == ["mcp__files__list"]
    assert harness.server_calls() == ["list"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A9")
async def test_malformed_arguments_are_answered_and_never_run() -> None:
    code = InMemoryNativeTool("ran")
    harness = RunHarness([ModelTurn(calls=(call("code_execution", malformed='{"code": "1'),)), says()], native=[code])
    run_id = await harness.play()
    assert code.calls == []
    [result] = harness.results()
    assert '{"code": "1' in result
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == ["tool_arguments_malformed"]
    assert harness.of_type(run_id, RunEventType.TOOL_STARTED) == []
    assert harness.actions(run_id) == ["run.started", "tool.failed", "run.completed"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A10")
async def test_usage_and_cost_are_summed_over_the_turns() -> None:
    first = ModelUsage(input_tokens=100, output_tokens=10, cached_tokens=50, reasoning_tokens=6)
    harness = RunHarness([asks("mcp__files__read", usage=first), says()], servers=FILES)
    run_id = await harness.play()
    usage = harness.run(run_id).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (200, 30, 50)
    assert (usage.reasoning_tokens, usage.estimated) == (6, False)
    assert (usage.turns, usage.tool_calls) == (2, 1)
    assert str(usage.cost_usd) == "0.230"
    assert harness.tracer.generations[0].reply is not None
    assert str(harness.tracer.generations[0].reply.usage.cost_usd) == "0.110"
    told = [event["usage"] for event in harness.of_type(run_id, RunEventType.MESSAGE_COMPLETED) if "usage" in event]
    of_call: partial[dict[str, object]] = partial(dict, model="scripted:demo.yaml", estimated=False)
    assert told == [
        of_call(input_tokens=100, output_tokens=10, cached_tokens=50, reasoning_tokens=6, cost_usd=0.11),
        of_call(input_tokens=100, output_tokens=20, cached_tokens=0, reasoning_tokens=0, cost_usd=0.12),
    ]


@pytest.mark.requirement("A10")
async def test_a_model_without_a_price_costs_nothing_that_is_known() -> None:
    harness = RunHarness([says()], agent=an_agent(model="free:local"))
    run_id = await harness.play()
    assert harness.run(run_id).usage.cost_usd == 0


@pytest.mark.requirement("A11")
async def test_text_of_a_failed_attempt_is_taken_back_before_the_next_one() -> None:
    retried = ModelTurn(
        text="Right.",
        events=(TextDelta(text="Wro"), ModelRetrying(model="other:model", attempt=2, reason="model_stalled")),
    )
    harness = RunHarness([retried], agent=an_agent(fallback_models=("other:model",)))
    run_id = await harness.play()
    begun, last = (message_id(run_id, 1, "reply.1", attempt) for attempt in (0, 1))
    types = [RunEventType.MESSAGE_DELTA, RunEventType.MESSAGE_DISCARDED, RunEventType.MODEL_RETRYING]
    story = [(event.type, event.data) for event in harness.events(run_id) if event.type in types]
    cut_off = harness.of_type(run_id, RunEventType.MESSAGE_DISCARDED)[0]["usage"]
    assert story == [
        (RunEventType.MESSAGE_DELTA, {"message_id": begun, "text": "Wro"}),
        (RunEventType.MESSAGE_DISCARDED, {"message_id": begun, "reason": "model_stalled", "usage": cut_off}),
        (RunEventType.MODEL_RETRYING, {"model": "other:model", "attempt": 2, "wait_s": 0.0}),
        (RunEventType.MESSAGE_DELTA, {"message_id": last, "text": "Right."}),
    ]
    assert harness.transcript()[-1].id == last
    assert harness.model.fallbacks == [("other:model",)]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A11")
async def test_a_model_that_fails_for_good_fails_the_run_with_its_code() -> None:
    error = ModelError("model_auth", "The provider refused the key.", retryable=False)
    harness = RunHarness([ModelTurn(text="Hal", error=error)])
    run_id = await harness.play()
    run = harness.run(run_id)
    assert run.status is RunStatus.FAILED
    assert run.error is not None
    assert (run.error.code, run.error.detail) == ("model_auth", "The provider refused the key.")
    assert harness.types(run_id)[-3:] == ["message.delta", "message.discarded", "run.failed"]
    assert harness.actions(run_id) == ["run.started", "run.failed"]
    assert harness.tracer.generations[0].error_code == "model_auth"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A11")
async def test_a_fault_of_ours_fails_the_run_with_a_reference_and_without_its_text() -> None:
    harness = RunHarness([ModelTurn(error=RuntimeError("secret detail"))])
    run_id = await harness.play()
    run = harness.run(run_id)
    assert run.error is not None
    assert run.error.code == "internal_error"
    assert "ref_" in run.error.detail
    assert "secret" not in str(harness.events(run_id))
    assert_consistent(harness, run_id)


async def test_a_timeout_error_out_of_the_model_adapter_is_a_fault_and_not_the_runs_time_limit() -> None:
    harness = RunHarness([ModelTurn(error=TimeoutError("a pool had no connection"))])
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.FAILED


async def test_the_stream_of_a_reply_is_read_to_its_end() -> None:
    harness = RunHarness([asks("mcp__files__read"), says()], servers=FILES)
    await harness.play()
    assert harness.model.closed == 2, "an unfinished stream would hold its connection until garbage is collected"


@pytest.mark.requirement("A8")
async def test_the_same_error_of_the_same_tool_three_turns_in_a_row_fails_the_run() -> None:
    broken = {"files": InMemoryMcpServer(tools={"read": text_reply("disk on fire", is_error=True)})}
    harness = RunHarness([asks("mcp__files__read")] * 4, servers=broken)
    run_id = await harness.play()
    run = harness.run(run_id)
    assert run.status is RunStatus.FAILED
    assert run.error is not None
    assert run.error.code == "tool_repeatedly_failing"
    assert "mcp__files__read" in run.error.detail
    assert harness.roles() == ["user", *["assistant", "tool"] * 3]
    assert harness.types(run_id)[-3:] == ["tool.failed", "message.completed", "run.failed"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A8")
async def test_refusals_count_as_failures_of_a_tool_too() -> None:
    harness = RunHarness([asks("nowhere")] * 4)
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.FAILED
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A8")
async def test_a_success_in_between_lets_the_run_go_on() -> None:
    answers = iter([True, True, False, True, True])

    async def flaky(_: object) -> object:
        return text_reply("hm", is_error=next(answers))

    server = InMemoryMcpServer(tools={"read": flaky})  # type: ignore[dict-item]  # it answers with a reply
    harness = RunHarness([*[asks("mcp__files__read")] * 5, says()], servers={"files": server})
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED


@pytest.mark.requirement("E5")
async def test_the_end_of_a_run_rings_for_the_threads_next_one() -> None:
    harness = RunHarness([says("one"), says("two")])
    first, second = await harness.start("1"), await harness.start("2")
    await harness.worker.execute(second)
    assert harness.run(second).status is RunStatus.QUEUED, "one active run per thread, in the order of arrival"
    harness.queue.run_ids.clear()
    await harness.worker.execute(first)
    assert harness.queue.run_ids == [second]
    await harness.worker.execute(second)
    assert [m.text for m in harness.transcript()] == ["1", "one", "2", "two"]
    assert_consistent(harness, first, second)


@pytest.mark.requirement("B15")
async def test_the_end_of_a_run_releases_its_own_connections_but_not_its_threads() -> None:
    harness = RunHarness([asks("mcp__files__read"), says()], servers=FILES)
    run_id = await harness.play()
    assert [(scope.run_id, scope.thread_id) for scope in harness.connections.released] == [(run_id, None)]


async def test_nobody_is_left_listening_and_no_task_running_after_a_run() -> None:
    harness = RunHarness([asks("mcp__files__read"), says()], servers=FILES)
    await harness.play()
    assert harness.wakeups.topic_count == 0
    assert harness.worker.active_runs.count == 0
