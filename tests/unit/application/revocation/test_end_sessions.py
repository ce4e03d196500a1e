"""EndSessions: whose sessions end together, and which one stays."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.revocation.end_session import EndSession
from application.revocation.end_sessions import EndSessions, EndSessionsCommand
from application.system.pages import MAX_PAGE_SIZE
from domain.errors import not_found
from domain.identity.role import Role
from domain.ids import ApiKeyId
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_gateway_session import StoredGatewaySession
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import a_gateway_session
from tests.people_builders import USER, a_console_session, a_person
from tests.refusals import refused
from tests.unit.application.actors import a_principal, roles_below

pytestmark = pytest.mark.requirement("P2")
HOLDER = ApiKeyId(USER)
BOBS = a_console_session(999, holder="usr_bob")


class Ports:
    def __init__(self, mocker: MockerFixture, *, sessions: int) -> None:
        self.state = InMemoryState()
        for session in (BOBS, *(a_console_session(number, began_s=number) for number in range(sessions))):
            self.state.console_sessions[session.id] = session
        self.revoke = mocker.create_autospec(RevokeGatewaySession, instance=True)
        store, clock = InMemoryConsoleSessionStore(self.state), FixedClock()
        one = EndSession(
            console_sessions=store,
            impersonations=InMemoryImpersonationStore(self.state),
            revoke_session=self.revoke,
            clock=clock,
            ids=SequentialIds(),
        )
        self.end = EndSessions(console_sessions=store, end_session=one, clock=clock)


async def test_all_sessions_of_a_person_end_but_the_one_in_which_they_ask(mocker: MockerFixture) -> None:
    ports, own = Ports(mocker, sessions=MAX_PAGE_SIZE + 2), a_console_session(1)
    caller = replace(a_person(), session_id=own.id)
    assert await ports.end.execute(EndSessionsCommand(principal=caller, holder=HOLDER)) == MAX_PAGE_SIZE + 1
    assert set(ports.state.console_sessions) == {own.id, BOBS.id}


async def test_admins_end_those_of_others_with_their_clients(mocker: MockerFixture) -> None:
    ports = Ports(mocker, sessions=1)
    client = replace(a_gateway_session(1), created_by=HOLDER, client_id="https://client.example")
    ports.state.gateway_sessions[client.id] = StoredGatewaySession(session=client)
    assert await ports.end.execute(EndSessionsCommand(principal=a_principal(), holder=HOLDER)) == 2
    ports.revoke.execute.assert_awaited_once_with(
        RevokeGatewaySessionCommand(principal=a_principal(), session_id=client.id)
    )
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await ports.end.execute(EndSessionsCommand(principal=a_principal(role), holder=HOLDER))


async def test_a_session_that_ends_meanwhile_is_passed_over(mocker: MockerFixture) -> None:
    ports = Ports(mocker, sessions=1)
    gone = replace(a_gateway_session(1), created_by=HOLDER, client_id="https://client.example")
    ports.state.gateway_sessions[gone.id] = StoredGatewaySession(session=gone)
    ports.revoke.execute.side_effect = not_found("gateway session", gone.id)
    assert await ports.end.execute(EndSessionsCommand(principal=a_person(), holder=HOLDER)) == 1
