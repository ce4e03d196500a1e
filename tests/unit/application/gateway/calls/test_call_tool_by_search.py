"""CallGatewayTool, where tools are searched: what a search finds, and what `call_tool` calls."""

import json

import pytest
from pytest_mock import MockerFixture

from application.gateway.tools.gateway_toolset import GatewayToolset
from domain.gateway.session import ToolNames, ToolSearch
from domain.json_value import JsonObject
from domain.policy.rules import ToolRule
from domain.tools.capabilities import ToolType
from tests.builders import a_tool
from tests.gateway_builders import CANARY, DENIES, ECHO, a_gateway_toolset
from tests.refusals import refused
from tests.unit.application.gateway.calls.test_call_tool import HELLO, SENT, Ports, a_command

READ = "mcp__files__read"
SEARCHED = {"tool_search": ToolSearch.ALWAYS}


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def having(ports: Ports, toolset: GatewayToolset) -> Ports:
    ports.toolsets.of.return_value = toolset
    return ports


async def found(ports: Ports, query: str) -> list[str]:
    answer = await ports.call_tool.execute(a_command("search_tools", {"query": query}, **SEARCHED))
    return (
        [] if "No tool fits" in answer.result.text else [one["name"] for one in json.loads(answer.result.text)["tools"]]
    )


@pytest.mark.requirement("X7")
async def test_a_search_finds_what_the_session_may_call_and_is_stored(ports: Ports) -> None:
    tools = (a_tool(), a_tool(READ), a_tool("source_query", type=ToolType.SOURCE_QUERY))
    having(ports, a_gateway_toolset(*tools))

    assert await found(ports, "read") == [READ]

    call, result = ports.stored_refusal()
    assert (call.name, call.params, result.is_error) == ("search_tools", {"query": "read"}, False)
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("X7", "C2")
async def test_what_policy_denies_is_neither_found_nor_called(ports: Ports) -> None:
    having(ports, a_gateway_toolset(a_tool(READ), denied=(a_tool(),), rules=DENIES))

    assert await found(ports, "echo") == []
    answer = await ports.call_tool.execute(a_command("call_tool", {"name": ECHO, "arguments": HELLO}, **SEARCHED))

    assert answer.result.error_code == "tool_denied"
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("X7", "C2")
async def test_a_tool_outside_the_session_is_unknown_to_call_tool(ports: Ports) -> None:
    with refused("tool_not_found"):
        await ports.call_tool.execute(a_command("call_tool", {"name": "mcp__files__delete"}, **SEARCHED))

    call, _ = ports.stored_refusal()
    assert call.name == "mcp__files__delete"


@pytest.mark.requirement("X7")
async def test_a_call_by_call_tool_is_recorded_and_sent_under_the_tools_own_name(ports: Ports) -> None:
    named: JsonObject = {"name": ECHO, "arguments": HELLO}
    answer = await ports.call_tool.execute(a_command("call_tool", named, param_headers={}, **SEARCHED))

    assert (answer.result, answer.called) == (SENT.result, ECHO)
    recorded = ports.ledger.intend.await_args.args[0]
    assert (recorded.name, recorded.params) == (ECHO, HELLO)
    sent = ports.sending.execute.await_args.args[0]
    assert (sent.name, sent.arguments, sent.param_headers) == (ECHO, HELLO, None)


@pytest.mark.requirement("X7", "C2")
async def test_limits_of_a_tool_hold_for_call_tool(ports: Ports) -> None:
    having(ports, a_gateway_toolset(rules={ECHO: ToolRule(max_calls=2)}))
    ports.ledger.intend.return_value = False

    answer = await ports.call_tool.execute(a_command("call_tool", {"name": ECHO, "arguments": HELLO}, **SEARCHED))

    assert answer.result.error_code == "max_calls_reached"


@pytest.mark.requirement("X7", "A5")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("search_tools", {}), ("search_tools", {"query": "echo", "limit": 21}), ("call_tool", {"arguments": {}})],
)
async def test_arguments_that_do_not_fit_a_meta_tool_are_answered_with_what_is_wrong(
    ports: Ports, name: str, arguments: JsonObject
) -> None:
    answer = await ports.call_tool.execute(a_command(name, arguments, **SEARCHED))

    assert answer.result.error_code == "tool_arguments_invalid"
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("X7", "C4")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("search_tools", {"query": CANARY}), ("call_tool", {"name": ECHO, "arguments": {"text": CANARY}})],
)
async def test_a_canary_token_in_a_search_or_a_call_ends_the_session(
    ports: Ports, name: str, arguments: JsonObject
) -> None:
    having(ports, a_gateway_toolset(canary=True))

    with refused("gateway_session_halted"):
        await ports.call_tool.execute(a_command(name, arguments, **SEARCHED))

    assert CANARY not in str(ports.settling.halt.await_args.args[2])
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("X7", "C4")
async def test_a_canary_token_in_what_a_search_finds_ends_the_session(ports: Ports) -> None:
    having(ports, a_gateway_toolset(a_tool(description=f"Echoes {CANARY}"), canary=True))

    with refused("gateway_session_halted"):
        await ports.call_tool.execute(a_command("search_tools", {"query": "echo"}, **SEARCHED))


@pytest.mark.requirement("X7")
async def test_a_session_of_original_names_finds_and_calls_by_them(ports: Ports) -> None:
    having(ports, a_gateway_toolset(a_tool(), a_tool("mcp__files__call_tool"), names=ToolNames.ORIGINAL))

    assert await found(ports, "echo") == ["echo"]
    await ports.call_tool.execute(a_command("call_tool", {"name": "call_tool", "arguments": HELLO}, **SEARCHED))

    assert ports.ledger.intend.await_args.args[0].name == "mcp__files__call_tool"


@pytest.mark.requirement("X7")
async def test_meta_tools_are_unknown_to_a_client_that_is_listed_all_tools(ports: Ports) -> None:
    for name in ("search_tools", "call_tool"):
        with refused("tool_not_found"):
            await ports.call_tool.execute(a_command(name, {"query": "echo"}))
