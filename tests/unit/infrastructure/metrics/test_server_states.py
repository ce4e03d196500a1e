"""MCP servers by state, and breakers that are open."""

import pytest

from application.mcp.ports import ServerState, ServerStatus
from domain.mcp.breaker import BreakerState
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.server_states import ServerStates
from tests.builders import SERVER, START, a_server
from tests.metering import sample


@pytest.mark.requirement("G2")
def test_a_server_is_counted_in_the_state_it_is_in_and_not_at_all_when_nothing_is_to_be_said() -> None:
    instruments = Instruments(version="1")
    states = ServerStates(instruments)
    server = a_server()

    def counted() -> list[float | None]:
        return [sample(instruments, "dragoman_mcp_servers", state=name) for name in ("connected", "unhealthy")]

    states.changed(server, ServerStatus(state=ServerState.CONNECTED, since=START))
    assert counted() == [1, 0]
    states.changed(server, ServerStatus(state=ServerState.UNHEALTHY, since=START, last_error="gone"))
    assert counted() == [0, 1]
    states.changed(server, ServerStatus(state=ServerState.DISCONNECTED, since=START))
    assert counted() == [0, 0]


@pytest.mark.requirement("G2")
def test_open_breakers_are_counted_until_they_close() -> None:
    instruments = Instruments(version="1")
    states = ServerStates(instruments)
    states.breaker_changed(SERVER, BreakerState.OPEN)
    states.breaker_changed(SERVER, BreakerState.OPEN)
    assert sample(instruments, "dragoman_mcp_breakers", state="open") == 1
    states.breaker_changed(SERVER, BreakerState.CLOSED)
    assert sample(instruments, "dragoman_mcp_breakers", state="open") == 0
