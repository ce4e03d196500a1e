"""ListServerContents: what one server has, for a person, in their session with an agent."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.contents.content_sources import ContentSources
from application.gateway.contents.list_server_contents import ListServerContents, ServerContents
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.mcp.contents import ContentMethod, ContentRequest, McpContents
from application.mcp.mcp_switch import McpKinds, McpSwitch
from application.mcp.ports import ConnectionScope, McpServerStore
from domain.identity.role import Role
from domain.ids import McpServerId, OrganizationId
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from tests.builders import a_server, an_agent
from tests.gateway_builders import CANARY, a_gateway_session, a_gateway_toolset
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6", "F5")
RUNNER = a_principal(Role.RUNNER)
SESSION = a_gateway_session()
SERVERS = {slug: a_server(McpServerId(f"mcp_{slug}"), slug=slug) for slug in ("clock", "files", "crm")}
ANSWERS: dict[ContentMethod, JsonObject] = {
    ContentMethod.RESOURCES: {"resources": [{"uri": "file:///a", "name": "a"}, {"uri": f"x:{CANARY}", "name": "b"}]},
    ContentMethod.TEMPLATES: {"resourceTemplates": [{"uriTemplate": "file:///{path}"}]},
    ContentMethod.PROMPTS: {"prompts": [{"name": "greet"}]},
}


class Ports:
    """An agent with the servers `clock` and `files`, and a canary token; `crm` is of other
    agents."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.asked: list[str] = []
        self.access: MockType = mocker.create_autospec(GatewayAccess, instance=True)
        self.access.of_principal.return_value = SESSION
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.servers.get.side_effect = self._server
        self._contents = mocker.create_autospec(McpContents, instance=True)
        self._contents.ask.side_effect = self._ask
        self._switch = mocker.create_autospec(McpSwitch, instance=True)
        self._switch.permitted.return_value = McpKinds(None)
        self._toolsets = mocker.create_autospec(GatewayToolsets, instance=True)
        agent = an_agent(mcp_servers=("files", "clock"))
        self._toolsets.of.return_value = a_gateway_toolset(agent=agent, canary=True)

    async def _server(self, _: OrganizationId, slug: str) -> McpServer | None:
        return SERVERS.get(slug)

    async def _ask(self, server: McpServer, _: ConnectionScope, request: ContentRequest) -> JsonObject:
        self.asked.append(server.config.slug)
        return ANSWERS[request.method]

    async def list(self, slug: str = "files", role: Role = Role.RUNNER) -> ServerContents:
        sources = ContentSources(
            toolsets=self._toolsets, servers=self.servers, contents=self._contents, switch=self._switch
        )
        listing = ListServerContents(access=self.access, servers=self.servers, sources=sources)
        return await listing.execute(a_principal(role), slug, "guide")


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_one_server_is_asked_and_lists_under_its_own_names_without_canary_tokens(ports: Ports) -> None:
    found = await ports.list()
    assert found == ServerContents(
        resources=({"uri": "file:///a", "name": "a"},),
        templates=({"uriTemplate": "file:///{path}"},),
        prompts=({"name": "greet"},),
    )
    assert set(ports.asked) == {"files"}
    ports.access.of_principal.assert_awaited_once_with(RUNNER, "guide")


async def test_a_server_that_the_agent_does_not_offer_is_not_asked(ports: Ports) -> None:
    with refused("content_denied"):
        await ports.list("crm")
    with refused("mcp_server_not_found"):
        await ports.list("nothing")
    assert ports.asked == []


async def test_listing_requires_the_role_runner_and_opens_no_session_without_it(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.list(role=Role.VIEWER)
    ports.access.of_principal.assert_not_awaited()
