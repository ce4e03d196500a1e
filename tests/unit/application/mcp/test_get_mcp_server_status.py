"""GetMcpServerStatus: the status of a server over all processes, read without connecting."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import ServerState, ServerStatus
from application.mcp.queries import GetMcpServerStatus
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import START, a_server
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

CONNECTED = ServerStatus(state=ServerState.CONNECTED, since=START, tool_count=2)


@pytest.fixture
def statuses(mocker: MockerFixture) -> MockType:
    """Mock of the statuses: the server is connected in some process."""
    statuses: MockType = mocker.create_autospec(ServerStatuses, instance=True)
    statuses.everywhere.return_value = CONNECTED
    return statuses


async def status(statuses: MockType, principal: Principal) -> ServerStatus:
    servers = InMemoryMcpServerStore(a_state_with_servers(a_server()))
    reading = GetMcpServerStatus(servers=servers, statuses=statuses)
    return await reading.execute(principal=principal, server="files")


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_status_over_all_processes(statuses: MockType, role: Role) -> None:
    assert await status(statuses, a_principal(role)) == CONNECTED
    statuses.everywhere.assert_awaited_once_with(a_server())


@pytest.mark.requirement("C6")
async def test_the_status_of_another_organizations_server_is_not_read(statuses: MockType) -> None:
    with refused("mcp_server_not_found"):
        await status(statuses, a_stranger())

    statuses.everywhere.assert_not_awaited()


async def test_reports_that_cannot_be_read_are_not_a_disconnected_server(statuses: MockType) -> None:
    statuses.everywhere.side_effect = storage_away()

    with refused("storage_unavailable"):
        await status(statuses, a_principal())
