"""InstallMcpServer: who may install which servers, and when nothing is started."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.install_mcp_server import InstallMcpServer, InstallMcpServerCommand
from application.mcp.installer import McpInstaller
from application.mcp.ports import McpServerStore, ServerState, ServerStatus
from application.mcp.server_installs import WAITING, ServerInstalls
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from tests.builders import START, a_server
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import INSTALLATION, PACKAGE, a_package_server, a_state_with_servers, a_switch, permit_kinds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

INSTALLING = ServerStatus(state=ServerState.INSTALLING, since=START, install=WAITING)
COPIED = McpServerConfig(slug="time", kind=McpServerKind.CUSTOM, path="/srv/time")
NPM = McpServerConfig(slug="time", kind=McpServerKind.NPM, package="time-server")
IN_PLACE = McpServerConfig(slug="time", kind=McpServerKind.CUSTOM, command="time-server")
REMOTE = McpServerConfig(slug="time", kind=McpServerKind.HTTP, url="https://time.example/mcp")


class Ports:
    """The server `time`, which is not installed; installations are a mock."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.server: McpServer = a_package_server()
        self.state = a_state_with_servers()
        self.installs: MockType = mocker.create_autospec(ServerInstalls, instance=True)
        self.installer: MockType = mocker.create_autospec(McpInstaller, instance=True)
        self.installer.has.return_value = True
        self.statuses: MockType = mocker.create_autospec(ServerStatuses, instance=True)
        self.statuses.of.return_value = INSTALLING

    async def install(
        self, principal: Principal | None = None, *, servers: McpServerStore | None = None
    ) -> ServerStatus:
        self.state.servers = {self.server.id: self.server}
        installing = InstallMcpServer(
            servers=servers or InMemoryMcpServerStore(self.state),
            switch=a_switch(self.state),
            installs=self.installs,
            installer=self.installer,
            statuses=self.statuses,
        )
        return await installing.execute(InstallMcpServerCommand(principal=principal or a_principal(), server="time"))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("config", [PACKAGE, NPM, COPIED], ids=["python", "npm", "copied"])
async def test_an_installation_begins_in_the_background_and_the_status_tells_of_it(
    ports: Ports, config: McpServerConfig
) -> None:
    ports.server = a_package_server(config)

    assert await ports.install() == INSTALLING

    ports.installs.start.assert_called_once_with(a_principal(), ports.server)
    ports.statuses.of.assert_called_once_with(ports.server)


async def test_a_disabled_server_can_be_installed(ports: Ports) -> None:
    ports.server = a_package_server(replace(PACKAGE, enabled=False))

    await ports.install()

    ports.installs.start.assert_called_once_with(a_principal(), ports.server)


@pytest.mark.requirement("B2")
async def test_an_installed_server_is_not_installed_again(ports: Ports) -> None:
    ports.server = a_package_server(installation=INSTALLATION)

    with refused("mcp_server_installed"):
        await ports.install()

    ports.installer.has.assert_called_once_with(INSTALLATION)
    ports.installs.start.assert_not_called()


@pytest.mark.requirement("B2")
async def test_a_server_whose_files_are_gone_is_installed_again(ports: Ports) -> None:
    ports.server = a_package_server(installation=INSTALLATION)
    ports.installer.has.return_value = False

    assert await ports.install() == INSTALLING

    ports.installs.start.assert_called_once_with(a_principal(), ports.server)


@pytest.mark.parametrize("config", [IN_PLACE, REMOTE], ids=["in place", "remote"])
async def test_a_server_that_is_run_or_reached_in_place_cannot_be_installed(
    ports: Ports, config: McpServerConfig
) -> None:
    ports.server = a_server(config=config)

    with refused("mcp_server_not_installable"):
        await ports.install()

    ports.installs.start.assert_not_called()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_install_servers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.install(a_principal(role))

    ports.installs.start.assert_not_called()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_installed(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.install(a_stranger())

    ports.installs.start.assert_not_called()


async def test_a_storage_failure_starts_no_installation(ports: Ports, mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.install(servers=servers)

    ports.installs.start.assert_not_called()


@pytest.mark.requirement("B2")
async def test_a_package_that_the_organization_may_not_have_is_not_installed(ports: Ports) -> None:
    permit_kinds(ports.state, "http", "npm")
    with refused("mcp_kind_not_permitted"):
        await ports.install()
    ports.installs.start.assert_not_called()
