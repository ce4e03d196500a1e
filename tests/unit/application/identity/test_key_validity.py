"""KeyValidity: whether a caller may go on reading a stream."""

from dataclasses import replace

import pytest

from domain.identity.user import UserStatus
from tests.builders import KEY, START, a_key, after
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import (
    PROVIDER,
    SUPPORT,
    USER,
    a_console_session,
    a_provider,
    a_user,
    an_impersonation,
)
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.validity import key_validity


class Ports:
    def __init__(self) -> None:
        self.state, self.clock = InMemoryState(), FixedClock()
        self.state.keys[KEY] = a_key()
        self.state.identity_providers[PROVIDER] = a_provider()
        self.state.users[USER] = a_user()
        self.keys = key_validity(self.state, self.clock)


@pytest.mark.requirement("P2")
async def test_a_user_reads_until_they_are_deactivated_or_their_token_expires() -> None:
    ports, ann = Ports(), a_user().principal(after(60))
    await ports.keys.require(ann)
    ports.state.users[USER] = a_user(status=UserStatus.DEACTIVATED)
    with refused("token_invalid"):
        await ports.keys.require(ann)
    ports.state.users[USER] = a_user()
    ports.clock.advance(60)
    with refused("token_invalid"):
        await ports.keys.require(ann)


async def test_a_key_reads_until_it_is_revoked() -> None:
    ports, key = Ports(), replace(a_principal(), key_id=KEY)
    await ports.keys.require(key)
    ports.state.keys[KEY] = replace(a_key(), revoked_at=START)
    with refused("token_invalid"):
        await ports.keys.require(key)


@pytest.mark.requirement("P2")
async def test_who_reads_in_a_session_of_the_console_reads_until_it_ends() -> None:
    ports, session = Ports(), a_console_session()
    ports.state.console_sessions[session.id] = session
    callers = (
        replace(a_user().principal(after(60)), session_id=session.id),
        replace(a_principal(), key_id=KEY, session_id=session.id),
    )
    for caller in callers:
        await ports.keys.require(caller)
    del ports.state.console_sessions[session.id]
    for caller in callers:
        with refused("token_invalid"):
            await ports.keys.require(caller)
        await ports.keys.require(replace(caller, session_id=None))


@pytest.mark.requirement("P7")
async def test_who_acts_as_another_user_reads_until_that_is_over() -> None:
    ports, begun = Ports(), an_impersonation()
    ports.state.users[SUPPORT] = replace(a_user(SUPPORT, subject="support"), may_impersonate=True)
    ports.state.impersonations[begun.id] = begun
    caller = replace(a_principal(), key_id=begun.acting, user_until=begun.expires_at, impersonation_id=begun.id)
    await ports.keys.require(caller)
    ports.state.impersonations[begun.id] = replace(begun, ended_at=START)
    with refused("token_invalid"):
        await ports.keys.require(caller)
