"""ListGatewayContents: which resources, templates and prompts a client is shown."""

import asyncio

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.contents.content_names import ContentKind
from application.gateway.contents.content_sources import ContentSources
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.mcp.contents import ContentRequest, McpContents
from application.mcp.mcp_switch import McpKinds, McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, McpServerStore
from domain.ids import McpServerId, OrganizationId
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from tests.builders import a_server, an_agent
from tests.gateway_builders import CANARY, a_gateway_session, a_gateway_toolset
from tests.refusals import refused, storage_away

SESSION = a_gateway_session()
CLOCK = a_server(McpServerId("mcp_clock"), slug="clock")
FILES = a_server(McpServerId("mcp_files"), slug="files")


def a_page(*names: str) -> JsonObject:
    return {"resources": [{"uri": f"file:///{name}", "name": name} for name in names]}


class Ports:
    """An agent with the servers `clock` and `files`, and a canary token."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.contents: MockType = mocker.create_autospec(McpContents, instance=True)
        self.switch: MockType = mocker.create_autospec(McpSwitch, instance=True)
        self.switch.permitted.return_value = McpKinds(None)
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.servers.get.side_effect = self._server
        self.toolsets: MockType = mocker.create_autospec(GatewayToolsets, instance=True)
        agent = an_agent(mcp_servers=("files", "clock"))
        self.toolsets.of.return_value = a_gateway_toolset(agent=agent, canary=True)

    async def _server(self, _: OrganizationId, slug: str) -> McpServer:
        return {"clock": CLOCK, "files": FILES}[slug]

    async def list(self) -> list[object]:
        """The URIs that the client is shown."""
        sources = ContentSources(
            toolsets=self.toolsets, servers=self.servers, contents=self.contents, switch=self.switch
        )
        return [
            entry["uri"] for entry in await ListGatewayContents(sources=sources).execute(SESSION, ContentKind.RESOURCES)
        ]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("F5")
async def test_all_servers_are_asked_at_the_same_time(ports: Ports) -> None:
    both_asked = asyncio.Barrier(2)

    async def ask(server: McpServer, _: ConnectionScope, request: ContentRequest) -> JsonObject:
        assert request.timeout_s > 0
        await both_asked.wait()
        return a_page(server.config.slug)

    ports.contents.ask.side_effect = ask

    async with asyncio.timeout(5):  # sooner than a server's deadline
        assert await ports.list() == ["mcp+clock:file:///clock", "mcp+files:file:///files"]


@pytest.mark.requirement("C4")
async def test_an_entry_with_a_canary_token_is_left_out(ports: Ports) -> None:
    ports.contents.ask.side_effect = [a_page("a", CANARY), a_page("b")]
    assert await ports.list() == ["mcp+clock:file:///a", "mcp+files:file:///b"]


@pytest.mark.requirement("F5")
async def test_a_server_that_does_not_answer_leaves_the_others(ports: Ports) -> None:
    ports.contents.ask.side_effect = [McpFailure(McpFailureKind.NOT_CONNECTED, "Gone."), a_page("b")]
    assert await ports.list() == ["mcp+files:file:///b"]


async def test_no_server_is_asked_while_mcp_is_switched_off(ports: Ports) -> None:
    ports.switch.permitted.return_value = None

    assert await ports.list() == []
    ports.contents.ask.assert_not_awaited()


async def test_storage_that_is_away_is_no_empty_list(ports: Ports) -> None:
    ports.servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.list()

    ports.contents.ask.assert_not_awaited()
