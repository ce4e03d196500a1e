"""ReleaseEndedSessions: connections of sessions that are over are closed, and no others."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.release_ended_sessions import ReleaseEndedSessions
from application.mcp.ports import ConnectionScope, McpConnections
from domain.gateway.session import GatewaySession
from tests.builders import ORG, RUN, START
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_session
from tests.refusals import refused, storage_away

SESSION = a_gateway_session()
OWN = ConnectionScope(organization_id=ORG, gateway_session_id=SESSION.id)


class Ports:
    """A process that serves one session, whose end it would hear of."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.access: MockType = mocker.create_autospec(GatewayAccess, instance=True)
        self.access.served.return_value = (SESSION,)
        self.access.knows.return_value = True
        self.sessions: MockType = mocker.create_autospec(GatewaySessionStore, instance=True)
        self.sessions.get.return_value = SESSION
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.clock = FixedClock()
        self.releasing = ReleaseEndedSessions(
            access=self.access,
            sessions=self.sessions,
            connections=self.connections,
            clock=self.clock,
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("F6")
async def test_connections_of_an_open_session_stay(ports: Ports) -> None:
    assert await ports.releasing.execute() == 0

    ports.access.dropped.assert_not_called()
    ports.connections.release.assert_not_awaited()


@pytest.mark.requirement("F6")
async def test_connections_of_a_session_close_when_it_has_expired(ports: Ports) -> None:
    ports.clock.advance(3600)

    assert await ports.releasing.execute() == 1

    ports.access.dropped.assert_called_once_with(SESSION.id)
    ports.connections.release.assert_awaited_once_with(OWN)
    ports.sessions.get.assert_not_awaited()


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("stored", [None, a_gateway_session(revoked_at=START)], ids=["deleted", "revoked"])
async def test_connections_of_a_session_close_when_another_process_has_ended_it(
    ports: Ports, stored: GatewaySession | None
) -> None:
    ports.access.knows.return_value = False
    ports.sessions.get.return_value = stored

    assert await ports.releasing.execute() == 1
    ports.connections.release.assert_awaited_once_with(OWN)


@pytest.mark.requirement("F6")
async def test_a_session_that_another_change_made_unknown_is_kept(ports: Ports) -> None:
    ports.access.knows.return_value = False

    assert await ports.releasing.execute() == 0
    ports.connections.release.assert_not_awaited()


@pytest.mark.requirement("F6")
async def test_connections_that_a_session_has_from_its_run_are_the_runs(ports: Ports) -> None:
    ports.access.served.return_value = (a_gateway_session(run_id=RUN),)
    ports.clock.advance(3600)

    assert await ports.releasing.execute() == 1
    ports.access.dropped.assert_called_once_with(SESSION.id)
    ports.connections.release.assert_not_awaited()


async def test_nothing_is_closed_while_it_is_not_known_whether_a_session_has_ended(ports: Ports) -> None:
    ports.access.knows.return_value = False
    ports.sessions.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.releasing.execute()

    ports.access.dropped.assert_not_called()
    ports.connections.release.assert_not_awaited()
