"""KeyValidity: whether a caller may go on reading a stream."""

from dataclasses import replace

import pytest

from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, GroupId
from tests.builders import KEY, ORG, START, a_key, after
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


@pytest.mark.requirement("P2")
async def test_teams_are_those_of_the_role_and_the_groups_that_one_has_now() -> None:
    ports, ann = Ports(), a_user(role=Role.ADMIN).principal(after(60))
    admins, anns = replace(a_principal(Role.ADMIN), key_id=KEY), ApiKeyId("key_anns")
    ports.state.keys[anns] = replace(a_key(anns, role=Role.OPERATOR), person_id=USER)
    hers = replace(a_principal(Role.OPERATOR), key_id=anns, key_of=USER)
    ports.state.users[USER] = a_user(role=Role.ADMIN)
    for caller in (ann, admins, hers):
        assert await ports.keys.require(caller) is None
    ports.state.users[USER] = a_user(role=Role.OPERATOR)
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="finance", members=(USER,), created_at=START, changed_at=START
    )
    ports.state.organization_groups[group.id] = group
    for caller in (ann, hers):
        assert await ports.keys.require(caller) == frozenset({"finance"})
