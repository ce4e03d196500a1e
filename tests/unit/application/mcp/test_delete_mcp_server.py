"""DeleteMcpServer: what goes with a server, and what stays when deleting fails."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.delete_mcp_server import DeleteMcpServer, DeleteMcpServerCommand
from application.mcp.ports import McpConnections, McpServerStore
from application.mcp.server_installs import ServerInstalls
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId
from tests.builders import ORG, SERVER, START, a_catalog, a_server, an_agent, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

OTHER = a_server(McpServerId(numbered("mcp", 2)), slug="clock")


class Ports:
    """Two servers with a catalog each; connections and installations are mocks."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers(a_server(version=4), OTHER)
        self.state.catalogs = {SERVER: a_catalog(), OTHER.id: a_catalog(OTHER.id)}
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.installs: MockType = mocker.create_autospec(ServerInstalls, instance=True)

    async def delete(self, principal: Principal | None = None, *, server: str = "files") -> None:
        deleting = DeleteMcpServer(
            servers=self.servers,
            connections=self.connections,
            installs=self.installs,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        await deleting.execute(DeleteMcpServerCommand(principal=principal or a_principal(), server=server))

    def assert_nothing_is_deleted(self) -> None:
        assert SERVER in self.state.servers
        assert SERVER in self.state.catalogs
        assert self.state.audit == {}
        self.assert_nothing_is_closed()

    def assert_nothing_is_closed(self) -> None:
        self.connections.forget.assert_not_awaited()
        self.installs.discard.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.parametrize("name", [SERVER, "files"])
async def test_a_deleted_server_is_gone_with_its_catalog_and_other_servers_stay(ports: Ports, name: str) -> None:
    await ports.delete(server=name)

    assert list(ports.state.servers) == [OTHER.id]
    assert list(ports.state.catalogs) == [OTHER.id]


@pytest.mark.requirement("B2", "B3")
async def test_connections_close_and_what_was_installed_is_removed(ports: Ports) -> None:
    await ports.delete()

    ports.connections.forget.assert_awaited_once_with(ORG, SERVER)
    ports.installs.discard.assert_awaited_once_with(ORG, SERVER)


@pytest.mark.requirement("C5")
async def test_a_deletion_is_audited_with_the_last_version(ports: Ports) -> None:
    await ports.delete()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.at) == (AuditAction.MCP_SERVER_DELETED, "key_admin", START)
    assert (entry.resource, entry.server_id) == (SERVER, SERVER)
    assert entry.details == {"slug": "files", "version": 4}


async def test_agents_that_list_the_slug_keep_it(ports: Ports) -> None:
    agent = an_agent(mcp_servers=("files", "clock"))
    ports.state.agents[agent.id] = [agent]

    await ports.delete()

    assert ports.state.agents == {agent.id: [agent]}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_delete_servers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.delete(a_principal(role))

    ports.assert_nothing_is_deleted()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_deleted(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.delete(a_stranger())

    ports.assert_nothing_is_deleted()


async def test_a_server_that_is_deleted_at_the_same_time_is_not_found(ports: Ports, mocker: MockerFixture) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = a_server()
    servers.delete.return_value = False

    with refused("mcp_server_not_found"):
        await ports.delete()

    ports.assert_nothing_is_closed()


@pytest.mark.parametrize("method", ["get", "delete"])
async def test_a_storage_failure_closes_and_removes_nothing(ports: Ports, mocker: MockerFixture, method: str) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = a_server()
    getattr(servers, method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.delete()

    ports.assert_nothing_is_closed()
