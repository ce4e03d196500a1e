"""GetMcpServerTools: the stored catalog of a server, without asking the server."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpCatalogStore, McpServerStore
from application.mcp.queries import GetMcpServerTools
from domain.identity.role import Role
from tests.builders import ORG, SERVER, a_catalog, a_server
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger


def over(state: InMemoryState) -> GetMcpServerTools:
    return GetMcpServerTools(servers=InMemoryMcpServerStore(state), catalogs=InMemoryMcpCatalogStore(state))


@pytest.mark.requirement("B5")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_catalog_as_it_was_stored(role: Role) -> None:
    state = a_state_with_servers(a_server(version=3))
    state.catalogs[SERVER] = a_catalog(server_version=2)

    shown = await over(state).execute(principal=a_principal(role), server="files")

    assert (shown.server, shown.catalog) == (a_server(version=3), a_catalog(server_version=2))


async def test_a_server_that_was_never_listed_has_no_catalog() -> None:
    shown = await over(a_state_with_servers(a_server())).execute(principal=a_principal(), server="files")
    assert shown.catalog is None


@pytest.mark.requirement("C6")
async def test_the_catalog_of_another_organization_is_not_read(mocker: MockerFixture) -> None:
    catalogs = mocker.create_autospec(McpCatalogStore, instance=True)
    servers = InMemoryMcpServerStore(a_state_with_servers(a_server()))

    with refused("mcp_server_not_found"):
        await GetMcpServerTools(servers=servers, catalogs=catalogs).execute(principal=a_stranger(), server="files")

    catalogs.load.assert_not_awaited()


async def test_a_catalog_that_cannot_be_read_is_not_a_server_without_tools(mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = a_server()
    catalogs = mocker.create_autospec(McpCatalogStore, instance=True)
    catalogs.load.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetMcpServerTools(servers=servers, catalogs=catalogs).execute(principal=a_principal(), server="files")

    servers.get.assert_awaited_once_with(ORG, "files")
