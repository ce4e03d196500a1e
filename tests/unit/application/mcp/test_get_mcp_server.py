"""GetMcpServer: who may read a server, and by which names."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpServerStore
from application.mcp.queries import GetMcpServer
from domain.identity.role import Role
from tests.builders import SERVER, a_server
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger


@pytest.fixture
def get() -> GetMcpServer:
    return GetMcpServer(servers=InMemoryMcpServerStore(a_state_with_servers(a_server())))


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("name", [SERVER, "files"])
async def test_every_role_reads_a_server_by_its_id_and_by_its_slug(get: GetMcpServer, role: Role, name: str) -> None:
    assert await get.execute(principal=a_principal(role), server=name) == a_server()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_found(get: GetMcpServer) -> None:
    with refused("mcp_server_not_found"):
        await get.execute(principal=a_stranger(), server="files")


async def test_a_server_that_is_not_registered_is_not_found(get: GetMcpServer) -> None:
    with refused("mcp_server_not_found"):
        await get.execute(principal=a_principal(), server="clock")


async def test_a_storage_failure_is_not_a_missing_server(mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetMcpServer(servers=servers).execute(principal=a_principal(), server="files")
