"""EndSession: who ends which session."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.revocation.end_session import EndSession, EndSessionCommand
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from tests.builders import START
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import SUPPORT, USER, a_console_session, a_person, an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger, roles_below

pytestmark = pytest.mark.requirement("P2")
SESSION = a_console_session()


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.console_sessions[SESSION.id] = SESSION
        self.revoke = mocker.create_autospec(RevokeGatewaySession, instance=True)
        self.end = EndSession(
            console_sessions=InMemoryConsoleSessionStore(self.state),
            impersonations=InMemoryImpersonationStore(self.state),
            revoke_session=self.revoke,
            clock=FixedClock(),
            ids=SequentialIds(),
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.parametrize("caller", [a_person(Role.VIEWER), a_principal()], ids=["own", "admin"])
async def test_people_end_their_own_sessions_and_admins_all(ports: Ports, caller: object) -> None:
    command = EndSessionCommand(principal=a_person(), session_id=SESSION.id)
    await ports.end.execute(replace(command, principal=caller))  # type: ignore[arg-type]
    assert ports.state.console_sessions == {}
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.resource, entry.details) == (
        AuditAction.SESSION_ENDED,
        SESSION.id,
        {"holder": USER},
    )


async def test_nobody_else_ends_a_session_or_learns_that_it_is_there(ports: Ports) -> None:
    for role in roles_below(Role.ADMIN):
        for session_id in (SESSION.id, "ses_unknown"):
            with refused("role_insufficient"):
                await ports.end.execute(EndSessionCommand(principal=a_principal(role), session_id=session_id))
    with refused("session_not_found"):
        await ports.end.execute(EndSessionCommand(principal=a_stranger(), session_id=SESSION.id))
    assert SESSION.id in ports.state.console_sessions
    assert ports.state.audit == {}


async def test_the_session_of_a_client_is_revoked_at_the_gateway(ports: Ports) -> None:
    await ports.end.execute(EndSessionCommand(principal=a_person(), session_id="gws_1"))
    ports.revoke.execute.assert_awaited_once_with(
        RevokeGatewaySessionCommand(principal=a_person(), session_id=GatewaySessionId("gws_1"))
    )


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    "caller",
    [
        a_person(Role.VIEWER),
        a_person(Role.VIEWER, id=SUPPORT),
        replace(a_person(Role.VIEWER), key_id=an_impersonation().acting),
        a_principal(),
    ],
    ids=["user", "actor", "acting", "admin"],
)
async def test_an_impersonation_is_ended_by_the_user_by_who_acts_or_by_an_admin(
    ports: Ports, caller: Principal
) -> None:
    begun = an_impersonation()
    ports.state.impersonations[begun.id] = begun
    await ports.end.execute(EndSessionCommand(principal=caller, session_id=begun.id))
    assert ports.state.impersonations[begun.id].ended_at == START
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.details) == (
        AuditAction.IMPERSONATION_ENDED,
        {"of": SUPPORT, "as": USER},
    )
    with refused("impersonation_not_found"):
        await ports.end.execute(EndSessionCommand(principal=caller, session_id=begun.id))


@pytest.mark.requirement("P7")
async def test_no_other_caller_ends_an_impersonation(ports: Ports) -> None:
    begun = an_impersonation()
    ports.state.impersonations[begun.id] = begun
    for role in roles_below(Role.ADMIN):
        with refused("role_insufficient"):
            await ports.end.execute(EndSessionCommand(principal=a_principal(role), session_id=begun.id))
    with refused("impersonation_not_found"):
        await ports.end.execute(EndSessionCommand(principal=a_stranger(), session_id=begun.id))
