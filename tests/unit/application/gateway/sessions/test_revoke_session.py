"""RevokeGatewaySession: who may end a session, and what ends with it."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.ports import session_approvals_topic
from application.gateway.ports import GatewaySessionStore, session_topic
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.mcp.ports import ConnectionScope, McpConnections
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import ORG, START
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import a_gateway_session, a_state_with
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

SESSION = a_gateway_session()


class Ports:
    """One open session in memory; the rest is mocks."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION)
        self.sessions: GatewaySessionStore = InMemoryGatewaySessionStore(self.state)
        self.access: MockType = mocker.create_autospec(GatewayAccess, instance=True)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)

    async def revoke(self, principal: Principal) -> None:
        revoking = RevokeGatewaySession(
            sessions=self.sessions,
            access=self.access,
            connections=self.connections,
            wakeups=self.wakeups,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        await revoking.execute(RevokeGatewaySessionCommand(principal=principal, session_id=SESSION.id))

    @property
    def is_revoked(self) -> bool:
        return self.state.gateway_sessions[SESSION.id].session.revoked_at is not None

    def assert_nothing_was_told(self) -> None:
        self.access.forget.assert_not_called()
        self.wakeups.wake.assert_not_called()
        self.connections.release.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C5", "F5")
async def test_an_operator_ends_a_session_which_is_audited(ports: Ports) -> None:
    await ports.revoke(a_principal(Role.OPERATOR))

    assert ports.state.gateway_sessions[SESSION.id].session.revoked_at == START
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.GATEWAY_SESSION_REVOKED,
        "key_operator",
        SESSION.id,
    )


@pytest.mark.requirement("F5", "F6")
async def test_the_token_stops_working_here_and_elsewhere_and_the_sessions_connections_close(ports: Ports) -> None:
    await ports.revoke(a_principal())

    ports.access.forget.assert_called_once_with(SESSION.id)
    ports.wakeups.wake.assert_called_once_with(session_topic(SESSION.id), session_approvals_topic(SESSION.id))
    ports.connections.release.assert_awaited_once_with(
        ConnectionScope(organization_id=ORG, gateway_session_id=SESSION.id)
    )


@pytest.mark.requirement("F5")
async def test_a_runner_may_not_end_a_session(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.revoke(a_principal(Role.RUNNER))

    assert not ports.is_revoked
    ports.assert_nothing_was_told()


@pytest.mark.requirement("P5")
async def test_who_opened_a_session_ends_it(ports: Ports) -> None:
    await ports.revoke(Principal(organization_id=ORG, key_id=SESSION.created_by, role=Role.RUNNER))

    assert ports.is_revoked


@pytest.mark.requirement("F5")
async def test_a_session_of_another_organization_is_not_found_and_stays_open(ports: Ports) -> None:
    with refused("gateway_session_not_found"):
        await ports.revoke(a_stranger())

    assert not ports.is_revoked
    ports.assert_nothing_was_told()


async def test_a_session_that_has_ended_is_not_found_and_audited_once(ports: Ports) -> None:
    await ports.revoke(a_principal())

    with refused("gateway_session_not_found"):
        await ports.revoke(a_principal())

    assert len(ports.state.audit) == 1
    ports.access.forget.assert_called_once()


async def test_a_session_whose_end_cannot_be_stored_is_not_forgotten(ports: Ports, mocker: MockerFixture) -> None:
    ports.sessions = mocker.create_autospec(GatewaySessionStore, instance=True)
    ports.sessions.revoke.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.revoke(a_principal())

    ports.assert_nothing_was_told()
