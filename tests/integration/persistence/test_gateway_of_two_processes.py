"""Clients of the gateway and what they are told, where two processes serve them on one PostgreSQL
database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest

from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.subscriptions.subscribers import Subscriber, Subscribers
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.gateway.session import GatewaySession
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.mcp.log_level import LogLevel
from domain.policy.allowlist import Allowlist
from infrastructure.assembly.storage import client_handshakes, subscribers, token_cache
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.runtime.system import RandomIds, SystemClock
from infrastructure.secrets.lazy_box import LazySecretBox
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, OTHER_ORG, an_agent, an_audit_event
from tests.contract.test_gateway import OWN_THREAD, a_session
from tests.databases import PostgresDatabases
from tests.integration.persistence.test_rows_kept_by_two_processes import Process, process
from tests.people_builders import PROVIDER, USER, a_provider, a_user

pytestmark = pytest.mark.requirement("F5")
BOX = LazySecretBox(["a key that all processes have"], load=SecretBox)
NOTHING: Allowlist = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What one process knows of clients, and whom it tells."""

    process: Process
    handshakes: ClientHandshakes
    subscribers: Subscribers

    @classmethod
    def of(cls, process: Process) -> "Gateway":
        handshakes = client_handshakes(
            process.feed, clients=process.stores.gateway_clients, box=BOX, clock=SystemClock(), ids=RandomIds()
        )
        return cls(process=process, handshakes=handshakes, subscribers=subscribers(process.feed))

    async def refuses(self, session: GatewaySession, sealed: str) -> bool:
        try:
            await self.handshakes.of(session, sealed)
        except ServiceError as error:
            return error.code == "gateway_client_not_found"
        return False


@pytest.fixture
async def two(postgres_databases: PostgresDatabases) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Two processes, and a session in their database."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_databases.fresh())
        here = await stack.enter_async_context(process(url, "here", ORG, OTHER_ORG))
        await here.stores.agents.add(an_agent(), an_audit_event(1, action=AuditAction.AGENT_CREATED))
        created = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_CREATED)
        await here.stores.gateway_sessions.add(a_session(), created, thread=OWN_THREAD)
        there = await stack.enter_async_context(process(url, "there"))
        yield Gateway.of(here), Gateway.of(there)


async def test_a_client_that_shook_hands_here_is_known_there_until_it_is_done(two: tuple[Gateway, Gateway]) -> None:
    here, there = two
    session = a_session()
    sealed = here.handshakes.shaken(session, "2025-11-25", {"roots": {}})
    client = await there.handshakes.of(session, sealed)
    assert client.capabilities == {"roots": {}}

    await here.handshakes.change(client, lambda known: known.with_log_level(LogLevel.ALERT))
    told = there.process.told_of("gateway_client")
    await here.handshakes.change(client, lambda known: known.subscribed("file:///a"))
    await told.wait()
    assert (await there.handshakes.settings(client)).log_level is LogLevel.ALERT

    told.clear()
    await here.handshakes.end(client)
    assert await here.refuses(session, sealed)
    async with asyncio.timeout(60):
        await told.wait()
    assert await there.refuses(session, sealed)


async def test_what_is_changed_here_is_told_to_who_listens_there(two: tuple[Gateway, Gateway]) -> None:
    here, there = two
    woken = asyncio.Event()
    subscriber = Subscriber(a_session(), woken.set)
    stranger = Subscriber(replace(a_session(), organization_id=OTHER_ORG), woken.set)
    for one in (subscriber, stranger):
        there.subscribers.add(one)

    changed = replace(an_agent(version=2), config=replace(an_agent().config, tool_allowlist=NOTHING))
    audit = an_audit_event(3, action=AuditAction.AGENT_UPDATED)
    await here.process.stores.agents.save(changed, expected_version=1, audit=audit)
    async with asyncio.timeout(60):
        await woken.wait()
    assert (subscriber.asks_again, subscriber.is_open_unknown, stranger.asks_again) == (True, False, False)

    woken.clear()
    revoked = an_audit_event(4, action=AuditAction.GATEWAY_SESSION_REVOKED)
    assert await here.process.stores.gateway_sessions.revoke(ORG, a_session().id, revoked)
    async with asyncio.timeout(60):
        await woken.wait()
    assert (subscriber.is_open_unknown, stranger.is_open_unknown) == (True, False)


@pytest.mark.requirement("P2")
async def test_who_listens_there_is_checked_again_when_people_lose_their_access_here(
    two: tuple[Gateway, Gateway],
) -> None:
    here, there = two
    people = here.process.stores
    await people.identity_providers.add(a_provider(), an_audit_event(3))
    await people.user_access.add(a_user(), an_audit_event(4))
    woken = asyncio.Event()
    subscriber = Subscriber(a_session(), woken.set)
    stranger = Subscriber(replace(a_session(), organization_id=OTHER_ORG), lambda: None)
    for one in (subscriber, stranger):
        there.subscribers.add(one)

    deactivated = replace(a_user(), status=UserStatus.DEACTIVATED)
    await people.users.change(ORG, USER, lambda _: (deactivated, an_audit_event(5)))
    async with asyncio.timeout(60):
        await woken.wait()
    assert (subscriber.is_open_unknown, stranger.is_open_unknown) == (True, False)

    woken.clear()
    assert await people.identity_providers.delete(ORG, PROVIDER, an_audit_event(6))
    async with asyncio.timeout(60):
        await woken.wait()
    assert stranger.is_open_unknown, "a person of any organization may have come by it"


@pytest.mark.requirement("P2")
async def test_a_sign_in_that_changes_no_role_is_told_to_no_other_process(two: tuple[Gateway, Gateway]) -> None:
    here, there = two
    stores = here.process.stores
    await stores.user_access.add(a_user(), an_audit_event(3))
    told = there.process.told_of("user_account")
    await stores.user_access.saw(replace(a_user(), name="Ann B."), an_audit_event(4))
    told_of_agent = there.process.told_of("agent")
    await stores.agents.save(an_agent(version=2), expected_version=1, audit=an_audit_event(5))
    async with asyncio.timeout(60):
        await told_of_agent.wait()
    assert not told.is_set()

    await stores.user_access.saw(replace(a_user(), role=Role.VIEWER), an_audit_event(6))
    async with asyncio.timeout(60):
        await told.wait()


@pytest.mark.requirement("P2")
def test_who_listens_here_is_checked_again_when_an_identity_provider_changes_here() -> None:
    rows = RowNotifications(shared=False)
    cache, told = token_cache(rows), subscribers(rows)
    subscriber = Subscriber(a_session(), lambda: None)
    told.add(subscriber)
    cache.forget_all()
    assert subscriber.is_open_unknown
