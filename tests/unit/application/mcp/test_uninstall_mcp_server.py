"""UninstallMcpServer: what goes with an installation, what stays, and what a failure leaves as it
was."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpConnections, McpServerStore, ServerState, ServerStatus
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.uninstall_mcp_server import UninstallMcpServer, UninstallMcpServerCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from tests.builders import ORG, SERVER, START, after
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import INSTALLATION, a_package_server, a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

INSTALLED = a_package_server(version=2, installation=INSTALLATION)
MISSING = ServerStatus(state=ServerState.NOT_INSTALLED, since=START)
CONFLICT = ServiceError("version_conflict", ErrorKind.PRECONDITION, "The server is at version 3, not 2.")


class Ports:
    """The installed server `time`; installations, connections and statuses are mocks."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers(INSTALLED)
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.installs: MockType = mocker.create_autospec(ServerInstalls, instance=True)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.statuses: MockType = mocker.create_autospec(ServerStatuses, instance=True)
        self.statuses.of.return_value = MISSING
        self.clock = FixedClock()

    async def uninstall(self, principal: Principal | None = None) -> ServerStatus:
        uninstalling = UninstallMcpServer(
            servers=self.servers,
            installs=self.installs,
            statuses=self.statuses,
            connections=self.connections,
            clock=self.clock,
            ids=SequentialIds(),
        )
        command = UninstallMcpServerCommand(principal=principal or a_principal(), server="time")
        return await uninstalling.execute(command)

    @property
    def stored(self) -> McpServer:
        return self.state.servers[SERVER]

    def assert_it_stays_installed(self) -> None:
        assert self.stored == INSTALLED
        assert self.state.audit == {}
        self.installs.discard.assert_not_awaited()
        self.connections.forget.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B2")
async def test_the_installation_goes_and_the_registration_stays(ports: Ports) -> None:
    ports.clock.advance(60)

    assert await ports.uninstall() == MISSING

    assert ports.stored == replace(INSTALLED, version=3, installation=None, updated_at=after(60))
    ports.installs.discard.assert_awaited_once_with(ORG, SERVER)
    ports.connections.forget.assert_awaited_once_with(ORG, SERVER)
    ports.statuses.of.assert_called_once_with(ports.stored)


@pytest.mark.requirement("B2", "C5")
async def test_an_uninstallation_is_audited_with_what_was_installed(ports: Ports) -> None:
    await ports.uninstall()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.at) == (AuditAction.MCP_SERVER_UNINSTALLED, "key_admin", START)
    assert (entry.resource, entry.server_id) == (SERVER, SERVER)
    assert entry.details == {"slug": "time", "version": 3, "installed": "1.2.3"}


async def test_files_are_removed_after_the_server_is_stored_as_not_installed(ports: Ports) -> None:
    async def discard(organization_id: str, server_id: McpServerId) -> None:
        assert ports.state.servers[server_id].installation is None

    ports.installs.discard.side_effect = discard

    await ports.uninstall()

    ports.installs.discard.assert_awaited_once()


@pytest.mark.requirement("B2")
async def test_a_server_that_is_not_installed_stays_as_it_is(ports: Ports) -> None:
    server = ports.state.servers[SERVER] = a_package_server()

    assert await ports.uninstall() == MISSING

    assert ports.stored == server
    assert ports.state.audit == {}
    ports.connections.forget.assert_not_awaited()


@pytest.mark.requirement("B2")
async def test_an_installation_under_way_is_stopped_and_its_files_are_removed(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_package_server()

    await ports.uninstall()

    ports.installs.stop.assert_awaited_once_with(SERVER)
    ports.installs.discard.assert_awaited_once_with(ORG, SERVER)


async def test_an_installation_recorded_while_it_was_stopped_is_uninstalled_too(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_package_server()

    async def record(server_id: McpServerId) -> None:
        ports.state.servers[server_id] = INSTALLED

    ports.installs.stop.side_effect = record

    await ports.uninstall()

    assert (ports.stored.version, ports.stored.installation) == (3, None)
    assert len(ports.state.audit) == 1


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_uninstall_servers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.uninstall(a_principal(role))

    ports.assert_it_stays_installed()
    ports.installs.stop.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_stays_installed(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.uninstall(a_stranger())

    ports.assert_it_stays_installed()
    ports.installs.stop.assert_not_awaited()


@pytest.mark.parametrize("failure", [CONFLICT, storage_away(), not_found("MCP server", "time")], ids=lambda e: e.code)
async def test_files_stay_if_the_change_cannot_be_stored(
    ports: Ports, mocker: MockerFixture, failure: ServiceError
) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = INSTALLED
    servers.save.side_effect = failure

    with refused(failure.code):
        await ports.uninstall()

    assert servers.save.await_args.kwargs["expected_version"] == 2
    ports.assert_it_stays_installed()


async def test_a_server_that_cannot_be_read_stays_installed(ports: Ports, mocker: MockerFixture) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.uninstall()

    ports.installs.stop.assert_not_awaited()
    ports.assert_it_stays_installed()
