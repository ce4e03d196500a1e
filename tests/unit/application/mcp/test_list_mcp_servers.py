"""ListMcpServers: who sees which servers, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpServerStore
from application.mcp.queries import ListMcpServers
from application.system.pages import PageRequest
from domain.identity.role import Role
from domain.ids import McpServerId
from tests.builders import a_server, after, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

OLDER = a_server()
NEWER = a_server(McpServerId(numbered("mcp", 2)), slug="clock", created_at=after(5))


@pytest.fixture
def servers() -> ListMcpServers:
    return ListMcpServers(servers=InMemoryMcpServerStore(a_state_with_servers(OLDER, NEWER)))


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_servers_of_its_organization_newest_first(
    servers: ListMcpServers, role: Role
) -> None:
    page = await servers.execute(principal=a_principal(role))
    assert page.items == (NEWER, OLDER)


async def test_a_page_holds_no_more_than_requested(servers: ListMcpServers) -> None:
    assert (await servers.execute(principal=a_principal(), page=PageRequest(limit=1))).items == (NEWER,)


@pytest.mark.requirement("C6")
async def test_servers_of_another_organization_are_not_listed(servers: ListMcpServers) -> None:
    assert (await servers.execute(principal=a_stranger())).items == ()


async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(McpServerStore, instance=True)
    store.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListMcpServers(servers=store).execute(principal=a_principal())
