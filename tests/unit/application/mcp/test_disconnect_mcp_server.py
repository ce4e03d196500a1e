"""DisconnectMcpServer: who may close the connections of a server."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.disconnect_mcp_server import DisconnectMcpServer, DisconnectMcpServerCommand
from application.mcp.ports import ConnectionScope, McpConnections, McpServerStore, ServerState, ServerStatus
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind
from tests.builders import ORG, SERVER, START, a_server
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

DISCONNECTED = ServerStatus(state=ServerState.DISCONNECTED, since=START)
SHARED = a_server(
    config=McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="files-server", isolation=Isolation.SHARED)
)


class Ports:
    """The server `files`; its connections and statuses are mocks."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.servers: McpServerStore = InMemoryMcpServerStore(a_state_with_servers(SHARED))
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.statuses: MockType = mocker.create_autospec(ServerStatuses, instance=True)
        self.statuses.of.return_value = DISCONNECTED

    async def disconnect(self, principal: Principal, *, connections: McpConnections | None = None) -> ServerStatus:
        disconnecting = DisconnectMcpServer(
            servers=self.servers, connections=connections or self.connections, statuses=self.statuses
        )
        return await disconnecting.execute(DisconnectMcpServerCommand(principal=principal, server="files"))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_operators_close_the_connections_and_see_the_status_afterwards(
    ports: Ports, mocker: MockerFixture, role: Role
) -> None:
    order = mocker.Mock()
    order.attach_mock(ports.connections, "connections")
    order.attach_mock(ports.statuses, "statuses")

    assert await ports.disconnect(a_principal(role)) == DISCONNECTED

    assert order.mock_calls == [
        mocker.call.connections.forget(ORG, SERVER),
        mocker.call.statuses.of(SHARED),
    ]


@pytest.mark.requirement("B3")
async def test_a_later_use_connects_again(ports: Ports) -> None:
    connections = InMemoryMcpConnections({"files": InMemoryMcpServer()})
    scope = ConnectionScope(organization_id=ORG)
    await connections.discover(SHARED, scope, timeout_s=1)

    await ports.disconnect(a_principal(), connections=connections)

    assert connections.open_connections == 0
    await connections.discover(SHARED, scope, timeout_s=1)
    assert connections.open_connections == 1


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.OPERATOR))
async def test_a_lower_role_disconnects_nothing(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.disconnect(a_principal(role))

    ports.connections.forget.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_stays_connected(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.disconnect(a_stranger())

    ports.connections.forget.assert_not_awaited()


async def test_a_storage_failure_disconnects_nothing(ports: Ports, mocker: MockerFixture) -> None:
    ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    ports.servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.disconnect(a_principal())

    ports.connections.forget.assert_not_awaited()
