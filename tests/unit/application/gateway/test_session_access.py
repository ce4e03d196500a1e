"""Who is let in by a session's token: how often, and for how long after what the session belongs to
has ended."""

import asyncio
from dataclasses import dataclass, replace

import pytest
from pytest_mock import MockerFixture

from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.session_ends import SessionEnds
from application.identity.authenticate import Authenticate
from application.identity.key_limits import KeyLimits
from application.runs.ports import status_topic
from application.system.rates import LocalRates
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import SESSION_TOKEN_PREFIX, GatewaySession
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import AGENT, ORG, RUN, THREAD, a_key, a_thread, after, an_agent, an_audit_event, an_organization
from tests.contract.run_steps import finish_step, start_and_claim
from tests.contract.stores import Stores, in_memory_stores
from tests.contract.test_gateway import a_session
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import CLIENT
from tests.group_builders import a_group
from tests.people_builders import USER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import caller_teams


class CountingSessions(InMemoryGatewaySessionStore):
    """Counts how often a session is read."""

    reads = 0

    async def by_token_hash(self, token_hash: str) -> GatewaySession | None:
        self.reads += 1
        return await super().by_token_hash(token_hash)


@dataclass(slots=True, kw_only=True)
class Harness:
    """A process that lets sessions in."""

    state: InMemoryState
    stores: Stores
    clock: FixedClock
    wakeups: InProcessWakeups
    sessions: CountingSessions
    access: GatewayAccess

    async def add(self, number: int, **changed: object) -> str:
        """A session, by its token."""
        token = f"{SESSION_TOKEN_PREFIX}{number}"
        session = a_session(number, token_hash=hash_token(token), **changed)
        await self.sessions.add(session, an_audit_event(number), thread=None)
        return token


async def listening() -> None:
    """Let listeners come to where they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def harness(mocker: MockerFixture) -> Harness:
    return a_harness(mocker)


def a_harness(mocker: MockerFixture, *, has_own_grants: bool = True) -> Harness:
    state, clock, wakeups = InMemoryState(), FixedClock(), InProcessWakeups()
    stores = in_memory_stores(state, wakeups)
    sessions = CountingSessions(state)
    access = GatewayAccess(
        sessions=sessions,
        agents=stores.agents,
        authenticate=mocker.create_autospec(Authenticate, instance=True),
        caller_teams=caller_teams(state),
        limits=KeyLimits(every=None, rates=LocalRates(clock=clock), organizations=stores.organizations),
        clock=clock,
        is_notified=lambda: True,
        ends=SessionEnds(wakeups=wakeups, clock=clock),
        has_own_grants=has_own_grants,
    )
    return Harness(state=state, stores=stores, clock=clock, wakeups=wakeups, sessions=sessions, access=access)


@pytest.mark.requirement("F5")
async def test_all_sessions_of_a_key_are_held_to_its_own_limit_together(harness: Harness) -> None:
    key = replace(a_key(), rate_limit=RateLimit(calls=2, per_s=60.0))
    await harness.stores.identity.add_key(key, an_audit_event(90))
    one, other = await harness.add(1, created_by=key.id), await harness.add(2, created_by=key.id)
    anothers = await harness.add(3, created_by=ApiKeyId("key_another"))
    await harness.access.open(one)
    await harness.access.open(other)

    with pytest.raises(ServiceError) as refused:
        await harness.access.open(one)

    assert (refused.value.code, refused.value.kind) == ("rate_limited", ErrorKind.LIMIT)
    assert refused.value.extra["retry_after_s"] == "30"
    await harness.access.open(anothers)
    harness.clock.advance(30)
    await harness.access.open(other)


@pytest.mark.requirement("F5", "F6")
async def test_a_session_of_a_run_is_not_read_again_until_the_run_may_have_ended(harness: Harness) -> None:
    await harness.stores.threads.add(a_thread())
    await harness.stores.agents.add(an_agent(), an_audit_event(91))
    claimed = await start_and_claim(harness.stores)
    token = await harness.add(1, run_id=RUN, thread_id=THREAD)
    await harness.access.open(token)
    await listening()
    assert harness.wakeups.topic_count == 1
    harness.clock.advance(1)
    await harness.access.open(token)
    reads = harness.sessions.reads

    harness.clock.advance(100)
    await harness.access.open(token)
    assert harness.sessions.reads == reads

    await harness.stores.journal.commit(claimed.lease, finish_step(claimed.run))
    harness.wakeups.wake(status_topic(RUN))
    await listening()
    with pytest.raises(ServiceError) as refused:
        await harness.access.open(token)
    assert refused.value.code == "token_invalid"


@pytest.mark.requirement("F6")
async def test_nothing_listens_for_a_session_that_was_dropped(harness: Harness) -> None:
    await harness.stores.threads.add(a_thread())
    await harness.stores.agents.add(an_agent(), an_audit_event(91))
    await start_and_claim(harness.stores)
    token = await harness.add(1, run_id=RUN, thread_id=THREAD)
    session = await harness.access.open(token)
    await listening()
    assert harness.wakeups.topic_count == 1

    harness.access.dropped(session.id)
    await listening()
    assert harness.wakeups.topic_count == 0


@pytest.mark.requirement("P5")
async def test_the_token_of_a_client_expires_before_its_session(harness: Harness) -> None:
    token = await a_clients_session(harness)
    await harness.access.open(token)
    harness.clock.advance(60)
    with refused("token_invalid"):
        await harness.access.open(token)


@pytest.mark.requirement("P5")
async def test_the_token_of_a_client_is_refused_at_the_url_of_another_agent(harness: Harness) -> None:
    await harness.stores.agents.add(an_agent(), an_audit_event(91))
    token = await a_clients_session(harness)
    for own in (None, "researcher", AGENT):
        await harness.access.open(token, agent=own)
    with refused("token_invalid"):
        await harness.access.open(token, agent="another")


@pytest.mark.requirement("P5")
async def test_the_token_of_a_client_is_refused_while_another_authorization_server_is_set(
    mocker: MockerFixture,
) -> None:
    harness = a_harness(mocker, has_own_grants=False)
    token = await a_clients_session(harness)
    with refused("token_invalid"):
        await harness.access.open(token)
    await harness.access.open(await harness.add(2))


async def a_clients_session(harness: Harness) -> str:
    """Of a person who is admitted, with a token for a minute."""
    await harness.stores.identity_providers.add(a_provider(), an_audit_event(92))
    await harness.stores.user_access.add(a_user(), an_audit_event(93))
    return await harness.add(1, created_by=ApiKeyId(USER), client_id=CLIENT, token_expires_at=after(60))


@pytest.mark.requirement("P2")
async def test_sessions_of_a_user_share_the_limit_that_the_organization_has_for_them(harness: Harness) -> None:
    limits = UserLimits(rate_limit=RateLimit(calls=2, per_s=60))
    harness.state.organizations[ORG] = replace(an_organization(), user_limits=limits)
    one = await harness.add(1, created_by=ApiKeyId(USER))
    as_another = await harness.add(2, created_by=ApiKeyId(f"impersonation:{USER}:usr_2"))
    anothers = await harness.add(3, created_by=ApiKeyId("usr_2"))
    await harness.access.open(one)
    await harness.access.open(as_another)
    with pytest.raises(ServiceError) as refused:
        await harness.access.open(one)
    assert (refused.value.code, refused.value.extra["retry_after_s"]) == ("rate_limited", "30")
    await harness.access.open(anothers)


@pytest.mark.requirement("P2")
async def test_sessions_of_a_users_key_share_the_users_limit_where_the_organization_counts_keys(
    harness: Harness,
) -> None:
    limits = UserLimits(rate_limit=RateLimit(calls=2, per_s=60))
    organization = replace(an_organization(), user_limits=limits, keys_count_for_users=True)
    harness.state.organizations[ORG] = organization
    key = replace(a_key(), person_id=USER)
    await harness.stores.identity.add_key(key, an_audit_event(90))
    of_key, own = await harness.add(1, created_by=key.id), await harness.add(2, created_by=ApiKeyId(USER))
    await harness.access.open(of_key)
    await harness.access.open(own)
    with pytest.raises(ServiceError) as refused:
        await harness.access.open(of_key)
    assert refused.value.code == "rate_limited"
    harness.state.organizations[ORG] = replace(organization, keys_count_for_users=False)
    await harness.access.open(of_key)


@pytest.mark.requirement("P2")
async def test_a_token_is_refused_to_who_does_not_see_what_the_team_of_the_sessions_thread_owns(
    harness: Harness,
) -> None:
    await harness.stores.agents.add(an_agent(), an_audit_event(91))
    await harness.stores.organization_groups.add(a_group("finance"), an_audit_event(90))
    await harness.stores.threads.add(replace(a_thread(), team="finance"))
    theirs = await harness.add(1, thread_id=THREAD, created_by=ApiKeyId("schedule:sch_1"))
    with refused("token_invalid"):
        await harness.access.open(theirs)
    everyones = await harness.add(2, created_by=ApiKeyId("schedule:sch_1"))
    await harness.access.open(everyones)


@pytest.mark.requirement("P2")
async def test_the_session_of_a_key_has_another_thread_once_its_agent_is_in_another_team(harness: Harness) -> None:
    agent = an_agent()
    await harness.stores.agents.add(agent, an_audit_event(91))
    caller = replace(a_principal(Role.RUNNER), teams=frozenset({"sales"}))
    before = await harness.access.of_principal(caller, agent.id)
    given = replace(agent, config=replace(agent.config, team="sales"), version=2)
    await harness.stores.organization_groups.add(a_group("sales"), an_audit_event(90))
    await harness.stores.agents.save(given, expected_version=1, audit=an_audit_event(92))
    after_it = await harness.access.of_principal(caller, agent.id)
    assert (before.team, after_it.team) == (None, "sales")
    assert before.thread_id != after_it.thread_id
    harness.state.threads[before.thread_id].thread = replace(a_thread(before.thread_id), team="finance")
    harness.access.forget(before.id)
    await harness.stores.agents.save(replace(agent, version=3), expected_version=2, audit=an_audit_event(93))
    with refused("token_invalid"):
        await harness.access.of_principal(caller, agent.id)
