"""ListGatewayTools: what a client is shown."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.gateway.tools.list_tools import ListGatewayTools
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import ToolNames, ToolSearch
from domain.tools.capabilities import ToolType
from tests.builders import a_tool
from tests.gateway_builders import DENIES, a_gateway_session, a_gateway_toolset
from tests.refusals import refused

SESSION = a_gateway_session()
NATIVE = a_tool("source_query", type=ToolType.SOURCE_QUERY)
ECHO, READ = a_tool("mcp__files__echo"), a_tool("mcp__files__read")


@pytest.fixture
def toolsets(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(GatewayToolsets, instance=True)


@pytest.mark.requirement("F5")
async def test_tools_are_shown_by_the_clients_names_in_the_order_of_the_toolset(toolsets: MockType) -> None:
    toolsets.of.return_value = a_gateway_toolset(NATIVE, ECHO, READ)

    assert await ListGatewayTools(toolsets=toolsets).execute(SESSION) == (
        ("source_query", NATIVE),
        ("mcp__files__echo", ECHO),
        ("mcp__files__read", READ),
    )


async def test_a_session_of_original_names_is_shown_what_the_server_calls_its_tools(toolsets: MockType) -> None:
    toolsets.of.return_value = a_gateway_toolset(ECHO, READ, names=ToolNames.ORIGINAL)

    assert await ListGatewayTools(toolsets=toolsets).execute(SESSION) == (("echo", ECHO), ("read", READ))


@pytest.mark.requirement("C2", "F5")
async def test_what_policy_denies_is_not_shown(toolsets: MockType) -> None:
    toolsets.of.return_value = a_gateway_toolset(READ, denied=(ECHO,), rules=DENIES)

    assert await ListGatewayTools(toolsets=toolsets).execute(SESSION) == (("mcp__files__read", READ),)


async def test_tools_that_a_client_would_have_to_display_are_not_shown(toolsets: MockType) -> None:
    toolsets.of.return_value = a_gateway_toolset(a_tool("send_email", type=ToolType.SEND_EMAIL), ECHO)

    assert await ListGatewayTools(toolsets=toolsets).execute(SESSION) == (("mcp__files__echo", ECHO),)


async def test_the_same_tools_are_the_same_object(toolsets: MockType) -> None:
    toolsets.of.return_value = a_gateway_toolset()
    listing = ListGatewayTools(toolsets=toolsets)

    assert await listing.execute(SESSION) is await listing.execute(SESSION)


@pytest.mark.requirement("C1")
async def test_a_disabled_agent_has_no_tools(toolsets: MockType) -> None:
    toolsets.of.side_effect = ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled.")

    with refused("agent_disabled"):
        await ListGatewayTools(toolsets=toolsets).execute(SESSION)


@pytest.mark.requirement("X7")
@pytest.mark.parametrize(
    ("search", "threshold", "listed"),
    [
        (ToolSearch.AUTO, None, ["mcp__files__echo", "mcp__files__read"]),
        (ToolSearch.AUTO, 2, ["mcp__files__echo", "mcp__files__read"]),
        (ToolSearch.AUTO, 1, ["search_tools", "call_tool"]),
        (ToolSearch.ALWAYS, None, ["search_tools", "call_tool"]),
        (ToolSearch.NEVER, 0, ["mcp__files__echo", "mcp__files__read"]),
    ],
)
async def test_meta_tools_replace_the_tools_of_servers_above_the_threshold_or_by_choice(
    toolsets: MockType, search: ToolSearch, threshold: int | None, listed: list[str]
) -> None:
    toolsets.of.return_value = replace(a_gateway_toolset(NATIVE, ECHO, READ), search_threshold=threshold)
    listing = ListGatewayTools(toolsets=toolsets)

    shown = await listing.execute(SESSION, search)

    assert [name for name, _ in shown] == ["source_query", *listed]
    assert await listing.execute(SESSION, search) is shown
