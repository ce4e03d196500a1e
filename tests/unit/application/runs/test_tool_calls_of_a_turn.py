"""The calls of one turn: side by side within a bound, each answered, however they end."""

import asyncio
import logging

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import ContentBlock, ContentKind, McpFailure, McpFailureKind, McpProgress, McpReply
from application.models.ports import ModelRequest
from application.runs.execution.call_tools import CallToolsSettings
from application.tools.call_context import IDEMPOTENCY_META
from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from domain.threads.message import ImageContent
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.doubles import InMemoryNativeTool, asks, call, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent


def server_of(**tools: "InMemoryTool | McpReply | McpFailure") -> dict[str, InMemoryMcpServer]:
    return {"s": InMemoryMcpServer(tools=tools)}


class Relay:
    """A server whose tools finish in the reverse of the order in which they were called."""

    def __init__(self, count: int) -> None:
        self.at_once = 0
        self.most_at_once = 0
        self._all_here = asyncio.Barrier(count)
        self._finished = [asyncio.Event() for _ in range(count + 1)]
        self._finished[count].set()

    async def answer(self, invocation: Invocation) -> McpReply:
        number = int(invocation.tool_name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self._all_here.wait()
        await self._finished[number + 1].wait()
        self.at_once -= 1
        self._finished[number].set()
        return text_reply(f"answer {number}")


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("is_searched", [False, True], ids=["listed tools", "searched tools"])
async def test_an_organization_that_switches_mcp_off_stops_the_next_call_of_a_run_under_way(is_searched: bool) -> None:
    async def switch_off(invocation: Invocation) -> McpReply:
        harness.change_organization(mcp_enabled=False)
        return text_reply("off")

    direct = ModelTurn(calls=(call("mcp__s__off"), call("mcp__elsewhere__off")))
    through = ModelTurn(calls=(call("call_tool", {"name": "mcp__s__off"}), call("call_any", {})))
    harness = RunHarness(
        [through if is_searched else asks("mcp__s__off"), through if is_searched else direct, says()],
        servers=server_of(off=InMemoryTool(answer=switch_off)),
        search_threshold=0 if is_searched else 60,
    )
    run_id = await harness.play()
    assert harness.results()[0] == "off"
    assert harness.results()[-2] == "MCP tool execution failed: MCP disabled."
    assert "was not found" in harness.results()[-1], "a name of no server of the agent stays an unknown one"
    failed = [data["error"] for data in harness.of_type(run_id, RunEventType.TOOL_FAILED)]
    assert {"code": "mcp_disabled", "detail": "MCP tool execution failed: MCP disabled."} in failed
    assert "## s\nUnavailable in this run: MCP disabled" in harness.model.requests[1].system
    assert (harness.server_calls(), harness.run(run_id).status) == (["off"], RunStatus.COMPLETED)
    assert_consistent(harness, run_id)


@pytest.mark.requirement("B14", "A13")
async def test_a_run_has_its_first_overview_of_servers_again_once_mcp_is_on_again() -> None:
    switched = iter([False, True])

    def script(request: ModelRequest) -> ModelTurn:
        enabled = next(switched, None)
        if enabled is None:
            return says()
        harness.change_organization(mcp_enabled=enabled)
        return asks("nowhere")

    harness = RunHarness(script, servers=server_of(x=text_reply("x")))
    await harness.play()
    first, off, on = (request.system for request in harness.model.requests)
    assert (first == on, "MCP disabled" in off, "mcp__s__x" in off) == (True, True, False)


@pytest.mark.requirement("A4")
async def test_calls_run_side_by_side_and_their_results_keep_the_models_order() -> None:
    relay = Relay(4)
    tools = {str(number): InMemoryTool(answer=relay.answer) for number in range(4)}
    harness = RunHarness(
        [asks(*(f"mcp__s__{number}" for number in range(4))), says()], servers={"s": InMemoryMcpServer(tools=tools)}
    )
    run_id = await harness.play()
    assert relay.most_at_once == 4
    assert harness.results() == [f"answer {number}" for number in range(4)]
    finished = [data["name"] for data in harness.of_type(run_id, RunEventType.TOOL_EXECUTED)]
    assert finished == [f"mcp__s__{number}" for number in (3, 2, 1, 0)], "each outcome is told when it is known"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A4")
async def test_no_more_calls_run_at_a_time_than_the_bound_allows() -> None:
    at_once = most_at_once = 0

    async def answer(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        nonlocal at_once, most_at_once
        at_once += 1
        most_at_once = max(most_at_once, at_once)
        for _turn in range(5):
            await asyncio.sleep(0)
        at_once -= 1
        return NativeToolOutput(value="ok")

    harness = RunHarness(
        [asks(*["code_execution"] * 12), says()],
        native=[InMemoryNativeTool(answer)],
        call_settings=CallToolsSettings(parallel_calls=3),
    )
    run_id = await harness.play()
    assert most_at_once == 3
    assert harness.results() == ["ok"] * 12
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A5")
async def test_every_kind_of_failure_is_told_to_the_model_and_the_loop_goes_on() -> None:
    harness = RunHarness(
        [
            asks("mcp__s__said", "mcp__s__rpc", "mcp__s__lost", "mcp__s__bug", "code_execution"),
            says("I could not."),
        ],
        servers=server_of(
            said=text_reply("no such file: x", is_error=True),
            rpc=McpFailure(McpFailureKind.SERVER_ERROR, "bad cursor", rpc_code=-32602),
            lost=McpFailure(McpFailureKind.CONNECTION_LOST, "pipe closed by 10.0.0.7"),
            bug=InMemoryTool(answer=_bug),
        ),
        native=[InMemoryNativeTool(NativeToolError("code_failed", "NameError: x"))],
    )
    run_id = await harness.play()
    said, rpc, lost, bug, native = harness.results()
    references = [entry.id for entry in harness.ledger(run_id)]
    assert said == "MCP tool execution failed: no such file: x"
    assert rpc == "MCP tool execution failed: MCP error -32602: bad cursor"
    assert lost == (
        "MCP tool execution failed: The connection to the MCP server was lost during the call; it may have taken effect."
        f" (reference {references[2]})"
    )
    assert bug == f"MCP tool execution failed unexpectedly: internal error (reference {references[3]})"
    assert native == "NameError: x"
    assert harness.run(run_id).status is RunStatus.COMPLETED
    codes = [entry.result.error_code for entry in harness.ledger(run_id) if entry.result]
    assert codes == ["mcp_tool_error", "mcp_server_error", "mcp_connection_lost", "mcp_unexpected", "code_failed"]
    assert "hunter2" not in str(harness.events(run_id))
    assert_consistent(harness, run_id)


async def _bug(_: Invocation) -> McpReply:
    raise RuntimeError("token=hunter2")


@pytest.mark.requirement("A5", "A7")
@pytest.mark.parametrize("limit", ["tool_timeout_s", "turn_tool_timeout_s"])
async def test_a_tool_that_takes_too_long_is_stopped_and_the_model_is_told(limit: str) -> None:
    async def never(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        await asyncio.Event().wait()
        raise AssertionError

    slow = InMemoryNativeTool(never)
    harness = RunHarness(
        [asks("code_execution", "mcp__s__slow"), says("Too slow.")],
        servers=server_of(slow=InMemoryTool(answer=_never)),
        native=[slow],
        limits=LimitSettings(**{limit: 0.02}),  # type: ignore[arg-type]  # a number
    )
    run_id = await harness.play()
    native, remote = harness.results()
    assert "timed out after" in native
    assert "timed out after" in remote
    assert slow.cancelled == 1
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == [
        "tool_timeout",
        "mcp_timeout",
    ]
    assert harness.run(run_id).output == "Too slow."
    assert_consistent(harness, run_id)


async def _never(_: Invocation) -> McpReply:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.requirement("A7")
async def test_the_servers_own_timeout_applies_where_it_is_smaller() -> None:
    harness = RunHarness([asks("mcp__s__quick"), says()], servers=server_of(quick=text_reply("ok")))
    harness.change_server("s", timeout_s=3.5)
    await harness.play()
    assert harness.connections.calls[0].call.timeout_s == 3.5


@pytest.mark.requirement("A7")
async def test_the_runs_timeout_applies_where_it_is_smaller() -> None:
    limits = LimitSettings(tool_timeout_s=2.0)
    harness = RunHarness([asks("mcp__s__quick"), says()], servers=server_of(quick=text_reply("ok")), limits=limits)
    await harness.play()
    assert harness.connections.calls[0].call.timeout_s == 2.0


async def test_a_tool_that_does_not_stop_is_abandoned_after_a_grace() -> None:
    async def stubborn(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()
        raise AssertionError

    harness = RunHarness(
        [asks("code_execution"), says()],
        native=[InMemoryNativeTool(stubborn)],
        # Long enough for the tool to have begun on a busy machine: one cancelled before would stop
        # like any other.
        limits=LimitSettings(tool_timeout_s=0.3),
        call_settings=CallToolsSettings(grace_s=0.1),
    )
    run_id = await harness.play()
    [result] = harness.results()
    assert "abandoned" in result
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_a_call_that_waits_for_a_place_longer_than_the_turn_may_take_is_refused() -> None:
    gate = Gate()

    async def answer(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        await gate.pass_through()
        return NativeToolOutput(value="ok")

    code = InMemoryNativeTool(answer)
    harness = RunHarness(
        [asks("code_execution", "code_execution"), says()],
        native=[code],
        call_settings=CallToolsSettings(parallel_calls=1),
    )
    run_id = await harness.start()
    executing = harness.worker.begin(run_id)
    await gate.reached.wait()
    harness.clock.advance(120)
    gate.open.set()
    await executing
    first, second = harness.ledger(run_id)
    assert first.result is not None
    assert second.result is not None
    assert (first.result.text, second.result.error_code) == ("ok", "limit_reached")
    assert "turn_tool_timeout_s" in second.result.text
    assert len(code.calls) == 1
    assert first.duration_ms == 120_000
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A6")
async def test_images_of_a_result_reach_the_model_with_its_text() -> None:
    image = ImageContent(media_type="image/png", data="aGk=")
    blocks = (
        ContentBlock(kind=ContentKind.TEXT, text="A chart:"),
        ContentBlock(kind=ContentKind.IMAGE, text="image/png, 2 bytes", image=image),
    )
    harness = RunHarness(
        [asks("mcp__s__draw"), says()], servers=server_of(draw=McpReply(is_error=False, content=blocks))
    )
    run_id = await harness.play()
    [result] = harness.model.requests[1].messages[-1].tool_results
    assert (result.result, result.images) == ("A chart:", (image,))
    assert_consistent(harness, run_id)


@pytest.mark.requirement("B4", "E3", "G1")
async def test_a_call_carries_its_id_and_the_trace_to_the_server() -> None:
    harness = RunHarness([asks("mcp__s__quick"), says()], servers=server_of(quick=text_reply("ok")))
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    [sent] = harness.connections.calls
    assert sent.call.meta == {IDEMPOTENCY_META: entry.id, "traceparent": f"00-{entry.id}"}
    assert (sent.scope.run_id, sent.scope.thread_id) == (run_id, harness.run(run_id).thread_id)


@pytest.mark.requirement("B4")
async def test_progress_of_a_call_is_published_before_its_outcome() -> None:
    async def working(invocation: Invocation) -> McpReply:
        await invocation.report_progress(McpProgress(progress=1, total=2))
        await invocation.report_progress(McpProgress(progress=2, total=2, message="done"))
        return text_reply("ok")

    harness = RunHarness([asks("mcp__s__work"), says()], servers=server_of(work=InMemoryTool(answer=working)))
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    [progress] = harness.of_type(run_id, RunEventType.TOOL_PROGRESS)
    assert progress == {"tool_call_id": entry.id, "progress": 2, "total": 2, "message": "done"}
    types = harness.types(run_id)
    assert types.index("tool.started") < types.index("tool.progress") < types.index("tool.executed")
    assert_consistent(harness, run_id)


async def test_progress_that_comes_after_the_run_is_over_is_dropped(mocker: MockerFixture) -> None:
    late: list[Invocation] = []

    async def answer(invocation: Invocation) -> McpReply:
        late.append(invocation)
        return text_reply("ok")

    harness = RunHarness([asks("mcp__s__work"), says()], servers=server_of(work=InMemoryTool(answer=answer)))
    run_id = await harness.play()
    call_later = mocker.spy(asyncio.get_running_loop(), "call_later")
    await late[0].report_progress(McpProgress(progress=1))
    assert call_later.call_count == 0, "no write is planned on a lease that is over"
    assert harness.of_type(run_id, RunEventType.TOOL_PROGRESS) == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A5", "G2")
async def test_the_log_names_tool_server_and_outcome(caplog: pytest.LogCaptureFixture) -> None:
    harness = RunHarness(
        [asks("mcp__s__good", "mcp__s__bad"), says()],
        servers=server_of(good=text_reply("ok"), bad=text_reply("no", is_error=True)),
    )
    with caplog.at_level(logging.DEBUG, logger="application.tools.execute_mcp_tool"):
        run_id = await harness.play()
    lines = {record.__dict__["tool"]: record for record in caplog.records if record.msg == "MCP tool called"}
    good, bad = lines["mcp__s__good"], lines["mcp__s__bad"]
    assert (good.levelno, good.__dict__["status"]) == (logging.DEBUG, "succeeded")
    assert (bad.levelno, bad.__dict__["status"], bad.__dict__["error_code"]) == (
        logging.WARNING,
        "failed",
        "mcp_tool_error",
    )
    for record, entry in zip((good, bad), harness.ledger(run_id), strict=True):
        assert record.__dict__["server_id"] == harness.server("s").id
        assert record.__dict__["tool_call_id"] == entry.id
        assert record.__dict__["run_id"] == run_id


@pytest.mark.requirement("B6", "B14")
@pytest.mark.parametrize(
    ("change", "text"), [("disable", "MCP server not connected"), ("remove", "Unknown tool: mcp__s__quick")]
)
async def test_a_server_that_goes_while_the_run_is_under_way_fails_its_calls_only(change: str, text: str) -> None:
    async def turn_off(_: Invocation) -> McpReply:
        if change == "disable":
            harness.change_server("s", enabled=False)
        else:
            del harness.state.servers[harness.server("s").id]
        return text_reply("off")

    harness = RunHarness(
        [asks("mcp__s__off"), asks("mcp__s__quick"), says()],
        servers=server_of(off=InMemoryTool(answer=turn_off), quick=text_reply("ok")),
    )
    run_id = await harness.play()
    assert harness.results()[0] == "off"
    assert text in harness.results()[1]
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert_consistent(harness, run_id)
