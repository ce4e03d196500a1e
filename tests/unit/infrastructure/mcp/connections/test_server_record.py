"""The record of a server: since when it is in trouble, whatever is tried in between."""

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from infrastructure.mcp.connections.server_record import ServerRecord
from tests.builders import a_server, after
from tests.doubles.surroundings import FixedClock, StepClock

UNREACHABLE = McpFailure(McpFailureKind.NOT_CONNECTED, "The server could not be reached.")


@pytest.mark.requirement("B12", "U6")
def test_a_server_is_unreachable_since_the_first_failure_until_it_connects() -> None:
    record = ServerRecord(a_server(), StepClock(step_s=1.0))
    record.connecting()
    record.failed(UNREACHABLE, needs_auth=False)
    first = record.status
    assert first.state is ServerState.ERROR
    record.connecting()
    assert (record.status.state, record.status.since > first.since) == (ServerState.CONNECTING, True)
    record.failed(UNREACHABLE, needs_auth=False)
    assert record.status == first
    record.connecting()
    record.connected("2025-11-25")
    record.disconnected("The connection was lost.")
    lost = record.status
    assert (lost.state, lost.since > first.since) == (ServerState.UNHEALTHY, True)


def test_a_server_without_trouble_is_idle_since_it_is_known() -> None:
    assert ServerRecord(a_server(), FixedClock(start=after(5))).status.since == after(5)
