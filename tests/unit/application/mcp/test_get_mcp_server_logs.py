"""GetMcpServerLogs: who may read what a server printed, and in which order."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.installer import McpInstaller
from application.mcp.ports import McpConnections, McpServerStore
from application.mcp.queries import GetMcpServerLogs
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import a_server
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below


class Ports:
    """The server `files`, which printed something when it was installed and something since."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.servers: McpServerStore = InMemoryMcpServerStore(a_state_with_servers(a_server()))
        self.installer: MockType = mocker.create_autospec(McpInstaller, instance=True)
        self.installer.log.return_value = "installed\n"
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.connections.logs.return_value = "warming up\n"

    async def read(self, principal: Principal) -> str:
        reading = GetMcpServerLogs(servers=self.servers, connections=self.connections, installer=self.installer)
        return await reading.execute(principal=principal, server="files")

    def assert_nothing_was_read(self) -> None:
        self.installer.log.assert_not_called()
        self.connections.logs.assert_not_called()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B2", "B3")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_operators_read_what_the_installer_printed_and_then_what_the_server_printed(
    ports: Ports, role: Role
) -> None:
    assert await ports.read(a_principal(role)) == "installed\nwarming up\n"


async def test_the_log_of_a_server_that_printed_nothing_is_empty(ports: Ports) -> None:
    ports.installer.log.return_value = ports.connections.logs.return_value = ""
    assert await ports.read(a_principal()) == ""


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.OPERATOR))
async def test_a_lower_role_does_not_read_logs(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.read(a_principal(role))

    ports.assert_nothing_was_read()


@pytest.mark.requirement("C6")
async def test_the_log_of_another_organization_is_not_read(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.read(a_stranger())

    ports.assert_nothing_was_read()


async def test_a_storage_failure_reads_no_log(ports: Ports, mocker: MockerFixture) -> None:
    ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    ports.servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.read(a_principal())

    ports.assert_nothing_was_read()
