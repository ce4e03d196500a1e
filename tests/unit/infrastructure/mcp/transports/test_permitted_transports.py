"""Servers of a kind that an organization may not have: nothing is started or connected for them."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpFailureKind
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.permitted_transports import PermittedTransports
from infrastructure.mcp.transports.server_transports import LateTransport, OpenTransport
from infrastructure.mcp.transports.stderr_log import StderrLog
from tests.builders import a_server
from tests.mcp_builders import a_state_with_servers, a_switch, permit_kinds


@pytest.mark.requirement("B1", "S5")
async def test_a_server_is_started_only_if_its_kind_is_permitted(mocker: MockerFixture) -> None:
    state = a_state_with_servers()
    started = mocker.create_autospec(LateTransport, instance=True)
    started.disconnect_cancels, started.pace = True, Pace()
    inner = mocker.create_autospec(OpenTransport, instance=True, return_value=started)
    transports = PermittedTransports(inner, switch=a_switch(state))
    transport = transports(a_server(), mocker.create_autospec(StderrLog, instance=True))
    assert transport.disconnect_cancels is True

    permit_kinds(state, "http")
    with pytest.raises(TransportFailedError) as failed:
        await transport.__aenter__()
    assert failed.value.fault.kind is McpFailureKind.DISABLED
    started.__aenter__.assert_not_awaited()

    permit_kinds(state, "custom")
    async with transport:
        started.__aenter__.assert_awaited_once()
        started.turn_in_s = 5.0
        assert transport.turn_in_s == 5.0
    await transports.close()
    inner.close.assert_awaited_once()
