"""BeginConsoleSession: what is stored of a sign-in."""

import pytest

from application.identity.begin_console_session import BeginConsoleSession, BeginConsoleSessionCommand
from domain.identity.console_session import SESSION_LASTS
from domain.ids import ApiKeyId
from tests.builders import ORG, START
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, USER

pytestmark = pytest.mark.requirement("P2")


async def test_each_sign_in_has_a_session_of_twelve_hours() -> None:
    state = InMemoryState()
    begin = BeginConsoleSession(
        console_sessions=InMemoryConsoleSessionStore(state), clock=FixedClock(), ids=SequentialIds()
    )
    command = BeginConsoleSessionCommand(
        organization_id=ORG, holder=ApiKeyId(USER), provider_id=PROVIDER, address="192.0.2.1", user_agent="Firefox"
    )
    first, second = await begin.execute(command), await begin.execute(command)
    assert state.console_sessions == {first.id: first, second.id: second}
    assert (str(first.holder), first.created_at, first.expires_at) == (USER, START, START + SESSION_LASTS)


async def test_what_a_browser_says_of_itself_is_one_printable_line_of_bounded_length() -> None:
    begin = BeginConsoleSession(
        console_sessions=InMemoryConsoleSessionStore(InMemoryState()), clock=FixedClock(), ids=SequentialIds()
    )
    command = BeginConsoleSessionCommand(
        organization_id=ORG, holder=ApiKeyId(USER), address="", user_agent="Fire\nfox\u202e" + "x" * 1_000
    )
    session = await begin.execute(command)
    assert session.user_agent is not None
    assert (session.user_agent[:8], len(session.user_agent), session.address) == ("Firefoxx", 200, None)
