"""DescribeMcpServers: states of many servers, without reading their tools and without asking for
all at once."""

import asyncio

import pytest
from pytest_mock import MockerFixture

from application.mcp.describe_mcp_servers import DescribeMcpServers, QuarantineCounts
from application.mcp.ports import ServerState, ServerStatus
from application.mcp.server_status import ServerStatuses
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from tests.builders import ORG, START, a_server, numbered
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


async def test_servers_are_described_in_their_order_some_at_a_time(mocker: MockerFixture) -> None:
    servers = [a_server(McpServerId(numbered("mcp", number)), slug=f"of-{number}") for number in range(1, 31)]
    under_way, most = 0, 0

    async def status(server: McpServer) -> ServerStatus:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return ServerStatus(state=ServerState.CONNECTED, since=START)

    statuses = mocker.create_autospec(ServerStatuses, instance=True)
    statuses.everywhere.side_effect = status
    counts = mocker.create_autospec(QuarantineCounts, instance=True)
    counts.awaiting.return_value = {servers[3].id: 2}
    describe = DescribeMcpServers(statuses=statuses, quarantine_counts=counts)

    described = await describe.execute(a_principal(Role.VIEWER), servers)

    assert [each.server for each in described] == servers
    assert [each.quarantined for each in described if each.quarantined] == [2]
    assert described[3].quarantined == 2
    counts.awaiting.assert_awaited_once_with(ORG)
    assert most == 8
