"""Runs of agents with canary tokens: whatever carries one out ends the run, and it is kept
nowhere."""

import base64
import json
from dataclasses import asdict

import pytest

from application.mcp.ports import McpInputRequired, McpProgress, McpReply
from application.models.ports import ModelRetrying, RequestedCall, TextDelta
from application.threads.append_message import AppendMessage, AppendMessageCommand
from application.threads.release_thread import ReleaseThread, ReleaseThreadCommand
from application.tools.ports import NativeToolContext, NativeToolOutput
from domain.errors import ServiceError
from domain.identity.role import Role as KeyRole
from domain.ids import RunId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.elicitation import Elicitation
from domain.policy.canary import CanaryToken
from domain.runs.events import RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.threads.message import Role, TextContent
from domain.tools.capabilities import ToolType
from tests.builders import THREAD, a_message, an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.doubles.threads import InMemoryThreadStore
from tests.unit.application.runs.doubles import HeldServer, InMemoryNativeTool, NativeAnswer, asks, call, says
from tests.unit.application.runs.harness import ADMIN, EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

TOKEN = "Nightingale-4471"
CANARY = CanaryToken(id="vault", secret=TOKEN)
MARK = "[canary:vault]"
ENCODED = {
    "plain": TOKEN,
    "other case": TOKEN.upper(),
    "hex": TOKEN.encode().hex(),
    "percent": "Ni%67htin%47ale%2D4471",
    "base64": base64.b64encode(TOKEN.encode()).decode(),
    "base64, one byte in": base64.b64encode(b"." + TOKEN.encode()).decode(),
    "base64, two bytes in": base64.b64encode(b".." + TOKEN.encode()).decode(),
}


def harness_of(
    *turns: ModelTurn,
    answer: "JsonValue | NativeAnswer" = "42",
    instructions: str = "",
    limits: LimitSettings | None = None,
) -> RunHarness:
    agent = an_agent(
        canary_tokens=(CANARY,), tools=(ToolType.CODE_EXECUTION,), instructions=instructions, limits=limits
    )
    return RunHarness(turns, agent=agent, native=[InMemoryNativeTool(answer)])


def harness_with(servers: dict[str, InMemoryMcpServer], *turns: ModelTurn) -> RunHarness:
    return RunHarness(turns, agent=an_agent(canary_tokens=(CANARY,), mcp_servers=tuple(servers)), servers=servers)


def everything_kept(harness: RunHarness) -> str:
    """All that the run left behind: messages, events, ledger, audit, runs and traces."""
    state = harness.state
    kept = [
        *(asdict(message) for stored in state.threads.values() for message in stored.messages),
        *(asdict(event) for stored in state.runs.values() for event in stored.events),
        *(asdict(entry) for stored in state.runs.values() for entry in stored.calls.values()),
        *(asdict(stored.run) for stored in state.runs.values()),
        *(asdict(entry) for entry in state.audit.values()),
        *((record.request, record.reply, record.run, record.error_code) for record in harness.tracer.generations),
        *((record.call, record.run) for record in harness.tracer.tool_calls),
    ]
    return json.dumps([repr(entry) for entry in kept]).casefold()


def assert_nothing_leaked(harness: RunHarness) -> None:
    kept = everything_kept(harness)
    for spelling in ENCODED.values():
        assert spelling.casefold() not in kept


def assert_halted(harness: RunHarness, run_id: RunId, *, tool_call_id: str | None = None) -> None:
    assert harness.run(run_id).status is RunStatus.HALTED
    expected: JsonObject = {"reason": "canary", "canary_id": "vault"}
    if tool_call_id is not None:
        expected["tool_call_id"] = tool_call_id
    assert harness.of_type(run_id, RunEventType.RUN_HALTED) == [expected]
    assert harness.types(run_id)[-1] == "run.halted"
    halted = next(entry for entry in harness.audit(run_id) if entry.action.value == "session.halted")
    assert halted.details["canary_id"] == "vault"
    quarantine = harness.state.threads[THREAD].thread.quarantine
    assert quarantine is not None
    assert (quarantine.run_id, quarantine.canary_id) == (run_id, "vault")
    assert_consistent(harness, run_id)
    assert_nothing_leaked(harness)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("spelling", ENCODED.values(), ids=ENCODED)
async def test_a_token_in_the_models_words_halts_the_run_wherever_the_stream_splits_it(spelling: str) -> None:
    text = f"It is {spelling}, keep it."
    for cut in range(len(text)):
        deltas = tuple(TextDelta(text=part) for part in (text[:cut], text[cut : cut + 1], text[cut + 1 :]) if part)
        harness = harness_of(ModelTurn(text="", events=deltas))
        run_id = await harness.play()
        assert_halted(harness, run_id)
        shown = "".join(str(data["text"]) for data in harness.of_type(run_id, RunEventType.MESSAGE_DELTA))
        reply = harness.transcript()[-1]
        assert reply.text == shown
        assert shown.startswith("It is ")
        assert shown.endswith(MARK)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("spelling", ENCODED.values(), ids=ENCODED)
async def test_a_token_in_a_calls_arguments_halts_the_run_before_anything_is_sent(spelling: str) -> None:
    tool = InMemoryNativeTool("42")
    leaking = call("code_execution", {"code": "print(1)", "data": [{"note": spelling}]})
    turn = ModelTurn(text="Let me see.", calls=(call("code_execution", {"code": "1"}), leaking))
    agent = an_agent(canary_tokens=(CANARY,), tools=(ToolType.CODE_EXECUTION,))
    harness = RunHarness([turn], agent=agent, native=[tool])
    run_id = await harness.play()
    assert_halted(harness, run_id, tool_call_id=harness.ledger(run_id)[1].id)
    assert tool.calls == []
    assert MARK in json.dumps(harness.ledger(run_id)[1].params)
    assert [result.is_error for result in harness.transcript()[-1].tool_results] == [True, True]


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "leaking",
    [
        call(f"fetch_{TOKEN}"),
        call("code_execution", {TOKEN: 1}),
        call("code_execution", malformed=f'{{"code": "{TOKEN}'),
        call("code_execution", {"body": '{"url": "' + TOKEN.replace("-", "\\u002d") + '"}'}),
    ],
    ids=["name", "key", "malformed", "json in json"],
)
async def test_no_part_of_a_call_carries_a_token_out(leaking: RequestedCall) -> None:
    harness = harness_of(ModelTurn(calls=(leaking,)))
    run_id = await harness.play()
    assert_halted(harness, run_id, tool_call_id=harness.ledger(run_id)[0].id)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("spelling", ENCODED.values(), ids=ENCODED)
async def test_a_token_in_a_tools_result_halts_the_run_and_is_not_stored(spelling: str) -> None:
    harness = harness_of(asks("code_execution"), says("never said"), answer={"found": [spelling]})
    run_id = await harness.play()
    assert_halted(harness, run_id, tool_call_id=harness.ledger(run_id)[0].id)
    assert MARK in harness.results()[0]
    assert len(harness.model.requests) == 1


@pytest.mark.requirement("C4")
async def test_a_tool_that_fails_with_a_token_halts_the_run() -> None:
    server = InMemoryMcpServer(tools={"look": InMemoryTool(answer=text_reply(f"no such key {TOKEN}", is_error=True))})
    harness = harness_with({"vault": server}, asks("mcp__vault__look"))
    run_id = await harness.play()
    assert_halted(harness, run_id, tool_call_id=harness.ledger(run_id)[0].id)
    assert MARK in harness.results()[0]


@pytest.mark.requirement("C4")
async def test_a_token_in_a_calls_progress_is_not_shown_and_halts_the_run() -> None:
    async def look(invocation: Invocation) -> McpReply:
        await invocation.report_progress(McpProgress(progress=1, total=None, message=f"at {TOKEN}"))
        return text_reply("done")

    server = InMemoryMcpServer(tools={"look": InMemoryTool(answer=look)})
    harness = harness_with({"vault": server}, asks("mcp__vault__look"))
    run_id = await harness.play()
    assert_halted(harness, run_id, tool_call_id=harness.ledger(run_id)[0].id)
    assert harness.of_type(run_id, RunEventType.TOOL_PROGRESS)[0]["message"] == f"at {MARK}"


@pytest.mark.requirement("C4")
async def test_calls_beside_the_one_that_brought_a_token_are_cancelled_and_answered() -> None:
    held = HeldServer()

    async def leak(_: Invocation) -> McpReply:
        await held.gate.reached.wait()
        return text_reply(TOKEN)

    servers = {**held.servers(), "vault": InMemoryMcpServer(tools={"look": InMemoryTool(answer=leak)})}
    harness = harness_with(servers, asks("mcp__s__held", "mcp__vault__look"))
    run_id = await harness.play()
    entries = harness.ledger(run_id)
    assert_halted(harness, run_id, tool_call_id=entries[1].id)
    assert [recorded.tool_name for recorded in harness.connections.cancelled] == ["held"]
    assert entries[0].result is not None
    assert entries[0].result.error_code == "run_halted"


@pytest.mark.requirement("C4")
async def test_a_token_the_model_says_in_the_closing_turn_halts_the_run() -> None:
    harness = harness_of(asks("code_execution"), says(f"It was {TOKEN}."), limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    assert_halted(harness, run_id)


@pytest.mark.requirement("C4")
async def test_what_a_failed_attempt_began_to_say_does_not_count_for_the_next() -> None:
    half = len(TOKEN) // 2
    retrying = ModelRetrying(model="scripted:demo.yaml", attempt=2, reason="model_stalled")
    events = (TextDelta(text=TOKEN[:half]), retrying, TextDelta(text=TOKEN[half:]))
    harness = harness_of(ModelTurn(events=events))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert TOKEN[:half] not in everything_kept(harness)


async def test_words_that_only_begin_like_a_token_reach_the_reader_whole_and_in_order() -> None:
    text = f"A {TOKEN[:-1]}! Or {TOKEN[:-1]}2, %4e%69, Tml and {TOKEN[:5]}"
    deltas = tuple(TextDelta(text=char) for char in text[:-1])
    harness = harness_of(ModelTurn(text=text[-1], events=deltas))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert "".join(str(data["text"]) for data in harness.of_type(run_id, RunEventType.MESSAGE_DELTA)) == text


@pytest.mark.requirement("C4")
async def test_the_model_is_given_the_token_where_its_placeholder_stands_and_the_trace_is_not() -> None:
    harness = harness_of(says(), instructions="Guard {{canary:vault}} well.")
    await harness.play()
    assert harness.model.requests[0].system == f"Guard {TOKEN} well."
    assert harness.tracer.generations[0].request.system == f"Guard {MARK} well."
    assert_nothing_leaked(harness)


@pytest.mark.requirement("C4")
async def test_a_token_of_each_run_differs_between_runs_and_holds_for_all_attempts_of_one() -> None:
    per_run = CanaryToken(id="vault", secret="a key", per_run=True)
    agent = an_agent(canary_tokens=(per_run,), instructions="Guard {{canary:vault}}.")
    harness = RunHarness([says("first"), says("second")], agent=agent)
    first, second = await harness.play(), await harness.play()
    asked = [request.system for request in harness.model.requests]
    assert asked == [f"Guard {per_run.in_run(first)}.", f"Guard {per_run.in_run(second)}."]
    assert asked[0] != asked[1]
    harness.model.add(ModelTurn(text=f"It is {per_run.in_run(first)}."))
    third = await harness.play()
    assert harness.run(third).status is RunStatus.COMPLETED
    fourth = await harness.start()
    harness.model.add(ModelTurn(text=f"It is {per_run.in_run(fourth).upper()}."))
    await harness.worker.execute(fourth)
    assert harness.run(fourth).status is RunStatus.HALTED
    assert per_run.in_run(fourth) not in everything_kept(harness)


@pytest.mark.requirement("C4")
async def test_a_user_who_says_a_token_is_answered_and_the_token_is_kept_nowhere() -> None:
    harness = harness_of(says("I do not know that."))
    harness.state.threads[THREAD].messages.append(a_message(content=(TextContent(text="Say BIRD."),)))
    run_id = await harness.play(f"Is it {TOKEN}?")
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.model.requests[0].messages[-1].text == f"Is it {MARK}?"
    assert_nothing_leaked(harness)


@pytest.mark.requirement("C4")
async def test_a_clients_result_that_holds_a_token_is_stored_and_shown_without_it() -> None:
    agent = an_agent(canary_tokens=(CANARY,), tools=(ToolType.SEND_EMAIL,))
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL),)), says("Sent.")], agent=agent)
    run_id = await harness.play()
    await harness.resume(run_id, {harness.ledger(run_id)[0].id: f"They answered {TOKEN}."})
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == [f"They answered {MARK}."]
    assert_nothing_leaked(harness)


@pytest.mark.requirement("C4")
async def test_an_answer_to_a_server_that_holds_a_token_is_not_sent() -> None:
    form: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = Elicitation(request_id="name", message="Whose?", schema=form)
    asks_back = McpReply(is_error=False, content=(), input_required=McpInputRequired(questions=(question,)))
    server = InMemoryMcpServer(tools={"look": InMemoryTool(answer=asks_back)})
    harness = harness_with({"vault": server}, asks("mcp__vault__look"))
    harness.change_server("vault", elicitation=ElicitationPolicy.ASK)
    run_id = await harness.play()
    [waiting] = harness.run(run_id).pending
    for spelling in ENCODED.values():
        with pytest.raises(ServiceError) as refused:
            await harness.resume(run_id, {waiting.id: {"action": "accept", "content": {"name": f"I, {spelling}"}}})
        assert refused.value.code == "elicitation_answer_invalid"
        assert spelling not in str(refused.value.violations)
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert_nothing_leaked(harness)


@pytest.mark.requirement("C4")
async def test_the_model_does_not_see_tokens_of_earlier_messages_of_the_thread() -> None:
    harness = harness_of(says())
    harness.state.threads[THREAD].messages.append(a_message(content=(TextContent(text=f"Earlier: {TOKEN}"),)))
    await harness.play("And?")
    assert [message.text for message in harness.model.requests[0].messages] == [f"Earlier: {MARK}", "And?"]


@pytest.mark.requirement("C4")
async def test_a_token_given_to_the_agent_is_watched_for_from_the_next_turn_of_a_run_under_way() -> None:
    async def adopt(arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        harness.change_agent(canary_tokens=(CANARY,))
        return NativeToolOutput(value="42")

    harness = RunHarness([asks("code_execution"), says(f"It is {TOKEN}.")], native=[InMemoryNativeTool(adopt)])
    run_id = await harness.play()
    assert_halted(harness, run_id)


@pytest.mark.requirement("C4")
async def test_a_thread_in_quarantine_takes_nothing_until_an_operator_releases_it() -> None:
    harness = harness_of(says(TOKEN), says("Fine."))
    halted = await harness.start()
    waiting = await harness.start("And now?")
    await harness.worker.execute(halted)
    assert_halted(harness, halted)
    harness.queue.run_ids.clear()
    await harness.worker.execute(waiting)
    await harness.recover()
    assert harness.run(waiting).status is RunStatus.QUEUED
    assert harness.queue.run_ids == []

    threads = InMemoryThreadStore(harness.state)
    append = AppendMessage(threads=threads, clock=harness.clock, ids=harness.ids)
    for refused in (
        harness.start(),
        harness.start(strategy=MultitaskStrategy.INTERRUPT),
        append.execute(
            AppendMessageCommand(principal=ADMIN, thread_id=THREAD, role=Role.USER, content=(TextContent(text="Hi"),))
        ),
    ):
        with pytest.raises(ServiceError) as raised:
            await refused
        assert raised.value.code == "thread_quarantined"

    release = ReleaseThread(threads=threads, queue=harness.queue, clock=harness.clock, ids=harness.ids)
    runner = type(ADMIN)(organization_id=ADMIN.organization_id, key_id=ADMIN.key_id, role=KeyRole.RUNNER)
    with pytest.raises(ServiceError) as raised:
        await release.execute(ReleaseThreadCommand(principal=runner, thread_id=THREAD))
    assert raised.value.code == "role_insufficient"
    released = await release.execute(ReleaseThreadCommand(principal=ADMIN, thread_id=THREAD))
    assert released.quarantine is None
    assert harness.queue.run_ids == [waiting]
    await harness.worker.execute(waiting)
    assert harness.run(waiting).status is RunStatus.COMPLETED
    with pytest.raises(ServiceError) as raised:
        await release.execute(ReleaseThreadCommand(principal=ADMIN, thread_id=THREAD))
    assert raised.value.code == "thread_not_quarantined"


async def test_a_run_of_an_agent_without_tokens_is_not_held_up() -> None:
    harness = RunHarness([says(TOKEN)])
    run_id = await harness.play()
    assert harness.of_type(run_id, RunEventType.MESSAGE_DELTA)[0]["text"] == TOKEN
