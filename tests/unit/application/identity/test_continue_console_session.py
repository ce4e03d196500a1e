"""ContinueConsoleSession: which sessions are accepted, and how often it is stored that they were
seen."""

import pytest
from pytest_mock import MockerFixture

from application.identity.continue_console_session import ContinueConsoleSession, ContinueConsoleSessionCommand
from application.identity.ports import ConsoleSessionStore
from domain.identity.console_session import SEEN_EVERY, SESSION_LASTS
from tests.builders import ORG, OTHER_ORG, START
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import a_console_session
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P2")
SESSION = a_console_session()
COMMAND = ContinueConsoleSessionCommand(organization_id=ORG, session_id=SESSION.id)


async def test_a_session_goes_on_until_it_expires_or_ends() -> None:
    state, clock = InMemoryState(), FixedClock()
    state.console_sessions[SESSION.id] = SESSION
    go_on = ContinueConsoleSession(console_sessions=InMemoryConsoleSessionStore(state), clock=clock)
    assert await go_on.execute(COMMAND) == SESSION
    with refused("signed_out"):
        await go_on.execute(ContinueConsoleSessionCommand(organization_id=OTHER_ORG, session_id=SESSION.id))
    clock.advance(SESSION_LASTS.total_seconds())
    with refused("signed_out"):
        await go_on.execute(COMMAND)
    state.console_sessions.clear()
    with refused("signed_out"):
        await ContinueConsoleSession(console_sessions=InMemoryConsoleSessionStore(state), clock=FixedClock()).execute(
            COMMAND
        )


async def test_it_is_stored_every_five_minutes_at_most_that_a_session_was_seen(mocker: MockerFixture) -> None:
    store, clock = mocker.create_autospec(ConsoleSessionStore, instance=True), FixedClock()
    store.get.return_value = SESSION  # as a cache has it
    go_on = ContinueConsoleSession(console_sessions=store, clock=clock)
    await go_on.execute(COMMAND)
    store.saw.assert_not_awaited()
    clock.advance(SEEN_EVERY.total_seconds())
    for _ in range(3):
        await go_on.execute(COMMAND)
    store.saw.assert_awaited_once_with(ORG, SESSION.id, START + SEEN_EVERY)
