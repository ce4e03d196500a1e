"""A run with more MCP tools than can be shown: it searches for them, and calls them by what it
found."""

import json
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpReply
from application.models.ports import ModelRequest
from application.tools.tool_search import MAX_LIMIT
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from domain.threads.message import ToolResultContent, ToolUse
from domain.tools.capabilities import ToolType
from tests.builders import an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import InMemoryNativeTool, asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

pytestmark = pytest.mark.requirement("A13")

TEXT: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def echo(invocation: Invocation) -> McpReply:
    return text_reply(f"{invocation.tool_name}: {invocation.arguments['text']}")


def servers(count: int = 100, **tools: InMemoryTool) -> dict[str, InMemoryMcpServer]:
    """One server with many tools that nobody looks for, and those given."""
    many = {f"filler_{number}": InMemoryTool(answer=text_reply("?"), description="Nothing.") for number in range(count)}
    known = {"say": InMemoryTool(answer=echo, description="Says a text aloud.", input_schema=TEXT)}
    return {"s": InMemoryMcpServer(tools={**many, **known, **tools})}


def searches(query: str, **arguments: int) -> ModelTurn:
    return ModelTurn(calls=(call("search_tools", {"query": query, **arguments}),))


def calls(name: str, arguments: JsonValue = None, **more: JsonValue) -> ModelTurn:
    given: JsonObject = {} if arguments is None else {"arguments": arguments}
    return ModelTurn(calls=(call("call_tool", {"name": name, **given, **more}),))


SAY = calls("mcp__s__say", {"text": "hi"})


async def test_a_tool_is_found_and_called_as_if_it_had_been_listed() -> None:
    harness = RunHarness([searches("say something aloud"), SAY, says()], servers=servers())
    run_id = await harness.play()

    assert harness.run(run_id).status is RunStatus.COMPLETED
    found = json.loads(harness.results()[0])
    assert found["tools"][0] == {"name": "mcp__s__say", "description": "Says a text aloud.", "parameters": TEXT}
    assert harness.results()[1] == "say: hi"
    assert harness.server_calls() == ["say"]
    assert_consistent(harness, run_id)


async def test_ledger_events_and_audit_name_the_tool_that_is_meant_and_the_transcript_what_was_said() -> None:
    harness = RunHarness([SAY, says()], servers=servers())
    run_id = await harness.play()

    [entry] = harness.ledger(run_id)
    assert (entry.name, entry.params, entry.type, entry.server_id) == (
        "mcp__s__say",
        {"text": "hi"},
        ToolType.MCP_TOOL,
        harness.server("s").id,
    )
    [started] = harness.of_type(run_id, RunEventType.TOOL_STARTED)
    [executed] = harness.of_type(run_id, RunEventType.TOOL_EXECUTED)
    assert (started["name"], started["params"], executed["name"], executed["server"]) == (
        "mcp__s__say",
        {"text": "hi"},
        "mcp__s__say",
        "s",
    )
    [audited] = [event for event in harness.audit(run_id) if event.action.value == "tool.executed"]
    assert (audited.tool, audited.server_id) == ("mcp__s__say", harness.server("s").id)
    assert [traced.call.name for traced in harness.tracer.tool_calls] == ["mcp__s__say"]
    parts = [part for message in harness.transcript() for part in message.content]
    [use] = [part for part in parts if isinstance(part, ToolUse)]
    [result] = [part for part in parts if isinstance(part, ToolResultContent)]
    assert (use.name, use.params) == ("call_tool", {"name": "mcp__s__say", "arguments": {"text": "hi"}})
    assert (result.tool_id, result.tool_name) == (use.id, "call_tool")
    assert harness.run(run_id).usage.tool_calls == 1


@pytest.mark.requirement("A4", "A9")
@pytest.mark.parametrize(
    ("turn", "code", "told"),
    [
        pytest.param(calls("mcp__s__say", {}), "tool_arguments_invalid", "text", id="arguments that do not fit"),
        pytest.param(calls("mcp__s__say"), "tool_arguments_invalid", "text", id="no arguments"),
        pytest.param(calls("mcp__s__say", "hi"), "tool_arguments_invalid", "/arguments", id="arguments of no form"),
        pytest.param(calls("mcp__s__say", {"text": "hi"}, x=1), "tool_arguments_invalid", "x", id="something more"),
        pytest.param(calls("mcp__s__nay", {}), "tool_not_found", "mcp__s__nay was not found", id="an unknown tool"),
        pytest.param(calls("send_email", EMAIL), "tool_not_found", "send_email was not found", id="a native tool"),
        pytest.param(calls("call_tool", {"name": "x"}), "tool_not_found", "call_tool was not found", id="itself"),
        pytest.param(asks("call_tool"), "tool_arguments_invalid", "name", id="nothing named"),
        pytest.param(asks("search_tools"), "tool_arguments_invalid", "query", id="nothing searched for"),
        pytest.param(
            searches("x", limit=MAX_LIMIT + 1), "tool_arguments_invalid", "/limit", id="more than may be shown"
        ),
        pytest.param(
            ModelTurn(calls=(call("call_tool", malformed="{"),)), "tool_arguments_malformed", "JSON", id="malformed"
        ),
    ],
)
async def test_what_cannot_be_called_is_answered_and_not_executed(turn: ModelTurn, code: str, told: str) -> None:
    harness = RunHarness([turn, says()], servers=servers())
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == code
    assert told in harness.results()[0]
    assert (harness.server_calls(), harness.run(run_id).status) == ([], RunStatus.COMPLETED)
    assert_consistent(harness, run_id)


async def test_the_allowlist_holds_for_what_is_found_and_for_what_is_called() -> None:
    many = servers()
    agent = an_agent(mcp_servers=("s",), tool_allowlist=tuple(f"mcp__s__filler_{number}" for number in range(100)))
    harness = RunHarness([searches("say aloud"), SAY, says()], servers=many, agent=agent)
    await harness.play()
    assert harness.results()[0] == "No tool fits that. Try other words."
    assert "mcp__s__say was not found" in harness.results()[1]
    assert harness.server_calls() == []


async def test_a_search_is_no_tool_call_but_is_told_and_audited() -> None:
    harness = RunHarness([searches("say aloud"), says()], servers=servers(), limits=LimitSettings(max_tool_calls=1))
    run_id = await harness.play()
    assert harness.run(run_id).usage.tool_calls == 0
    [executed] = harness.of_type(run_id, RunEventType.TOOL_EXECUTED)
    assert (executed["name"], executed["server"]) == ("search_tools", None)
    assert [event.tool for event in harness.audit(run_id) if event.tool] == ["search_tools"]


async def test_native_tools_stay_as_they_are_and_displayed_ones_are_settled_by_the_client() -> None:
    native = InMemoryNativeTool("42")
    turn = ModelTurn(calls=(call("code_execution"), call("send_email", EMAIL), *SAY.calls))
    harness = RunHarness([turn, says()], servers=servers(), native=[native])
    run_id = await harness.play()
    assert [tool.name for tool in harness.model.requests[0].tools] == [
        "code_execution",
        "send_email",
        "create_calendar_event",
        "search_tools",
        "call_tool",
    ]
    run = harness.run(run_id)
    assert [use.name for use in run.pending] == ["send_email"]
    await harness.resume(run_id, {run.pending[0].id: "sent"})
    await harness.worker.execute(run_id)
    assert harness.results() == ["42", "sent", "say: hi"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A8")
async def test_tools_that_fail_alike_are_told_apart_and_one_that_fails_on_is_noticed() -> None:
    def broken(name: str) -> InMemoryTool:
        return InMemoryTool(answer=text_reply("disk full", is_error=True), description=name)

    failing = {name: broken(name) for name in ("one", "two", "three")}
    several = [calls(f"mcp__s__{name}", {}) for name in failing]
    harness = RunHarness([*several, says()], servers=servers(100, **failing))
    assert harness.run(await harness.play()).status is RunStatus.COMPLETED

    harness = RunHarness([several[0]] * 3, servers=servers(100, **failing))
    run = harness.run(await harness.play())
    assert run.error is not None
    assert (run.error.code, "mcp__s__one" in run.error.detail) == ("tool_repeatedly_failing", True)


@pytest.mark.requirement("E3")
async def test_a_call_that_a_crash_left_open_goes_on_under_its_real_name(mocker: MockerFixture) -> None:
    tools = {"look": InMemoryTool(answer=text_reply("seen"), read_only_hint=True, description="Looks.")}
    harness = RunHarness([calls("mcp__s__look", {}), says()], servers=servers(100, **tools))
    harness.change_server("s", trusted=True)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.connections.calls.clear()
    await harness.worker.execute(run_id)
    assert (harness.server_calls(), harness.results()) == (["look"], ["seen"])
    [result] = [result for message in harness.transcript() for result in message.tool_results]
    assert (result.tool_name, harness.ledger(run_id)[0].called_as) == ("call_tool", "call_tool")
    assert_consistent(harness, run_id)


@pytest.mark.parametrize(("tools", "threshold", "searched"), [(60, 60, False), (61, 60, True), (1, 0, True)])
async def test_tools_are_searched_for_above_the_threshold_only(tools: int, threshold: int, searched: bool) -> None:
    harness = RunHarness([says()], servers=servers(tools - 1), search_threshold=threshold)
    await harness.play()
    shown = [tool.name for tool in harness.model.requests[0].tools]
    assert ("search_tools" in shown, "mcp__s__say" in shown) == (searched, not searched)


async def test_where_all_tools_are_shown_the_names_of_the_search_mean_nothing() -> None:
    harness = RunHarness([SAY, searches("say"), says()], servers=servers(3))
    await harness.play()
    assert ["was not found" in result for result in harness.results()] == [True, True]


async def test_a_tool_called_by_its_own_name_is_called_all_the_same() -> None:
    harness = RunHarness([ModelTurn(calls=(call("mcp__s__say", {"text": "hi"}),)), says()], servers=servers())
    await harness.play()
    assert harness.results() == ["say: hi"]


async def test_the_overview_names_a_few_tools_of_each_server_and_says_how_to_find_the_others() -> None:
    harness = RunHarness([says()], servers={**servers(), "small": InMemoryMcpServer(tools={"one": text_reply("1")})})
    await harness.play()
    system = harness.model.requests[0].system
    assert "Find what you need with search_tools, then call it with call_tool." in system
    assert "101 tools, such as mcp__s__filler_0, mcp__s__filler_1, " in system
    assert "Tools: mcp__small__one" in system
    assert system.count("mcp__s__") == 5
    assert "Says a text aloud" not in system


async def test_a_request_is_no_larger_with_ten_thousand_tools_than_with_a_hundred() -> None:
    def size(request: ModelRequest) -> int:
        definitions = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in request.tools)
        return definitions + len(request.system)

    sizes = []
    for count in (100, 9_999):
        harness = RunHarness([says()], servers=servers(count))
        await harness.play()
        sizes.append(size(harness.model.requests[0]))
    assert abs(sizes[1] - sizes[0]) < 20


async def test_tools_that_are_too_large_to_be_shown_together_are_named() -> None:
    large: JsonObject = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(900)}}
    tools = {
        f"big_{number}": InMemoryTool(answer=text_reply("?"), description="Huge.", input_schema=large)
        for number in range(5)
    }
    harness = RunHarness([searches("huge"), says()], servers=servers(100, **tools))
    await harness.play()
    found = json.loads(harness.results()[0])
    assert len(found["tools"]) == 1
    assert found["further_tools"] == [f"mcp__s__big_{number}" for number in range(1, 5)]


async def test_a_changed_tool_is_refused_under_its_real_name() -> None:
    harness = RunHarness([SAY, says()], servers=servers())
    await harness.warm_up()
    run_id = await harness.start()
    tools = dict(harness.connections.servers["s"].tools)
    say = tools["say"]
    assert isinstance(say, InMemoryTool)
    harness.connections.servers["s"].tools = {**tools, "say": replace(say, description="Says it to all.")}
    await harness.worker.execute(run_id)
    [blocked] = harness.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert (blocked["name"], blocked["reason"]) == ("mcp__s__say", "mcp_tool_changed")
