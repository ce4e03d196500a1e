"""Rows that two processes on one PostgreSQL database keep in memory: what one changes the other
hears of, and where it could not hear it reads."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from application.gateway.sessions.gateway_access import GatewayAccess
from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.key_limits import KeyLimits
from application.system.rates import LocalRates
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import SESSION_TOKEN_PREFIX
from domain.identity.api_key import hash_token
from domain.ids import OrganizationId
from domain.model_providers.provider import ModelProvider, ProviderKind
from domain.secrets.secret import Secret
from infrastructure.assembly.storage import gateway_access
from infrastructure.events.postgres_wakeups import PostgresWakeups
from infrastructure.events.row_notifications import FRESH_S, RowNotifications
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.runtime.system import SystemClock
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    SERVER,
    START,
    a_catalog,
    a_definition,
    a_key,
    a_server,
    an_agent,
    an_audit_event,
    an_organization,
)
from tests.contract.patient_wakeups import patient, until_fresh
from tests.contract.sql_legs import kept, opened
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD, a_session
from tests.databases import PostgresDatabases
from tests.integration.persistence.kept_callers import authenticating, teams_of
from tests.people_builders import a_console_session

SOON_S = 60.0
TOKEN = "dgm_a-token-of-this-test"


class Clock:
    """The machine's, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self._stands_at: float | None = None

    def __call__(self) -> float:
        return (time.monotonic() if self._stands_at is None else self._stands_at) + self.ahead_s

    def stop(self) -> None:
        """From here on what is fresh stays fresh, however long the test takes."""
        self._stands_at = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one process has."""

    url: str
    database: PostgresDatabase
    stores: Stores
    feed: RowNotifications
    wakeups: PostgresWakeups
    clock: Clock
    authenticate: Authenticate
    gateway: GatewayAccess

    async def until_fresh(self) -> None:
        """Until a heartbeat has come back."""
        await until_fresh(self.feed)

    def told_of(self, table: str) -> asyncio.Event:
        """Set when the next change of the table is heard of, and forgotten what was kept of it."""
        told = asyncio.Event()
        self.feed.listen(lambda organization_id: told.set(), table)
        return told


@asynccontextmanager
async def process(url: str, name: str, *first: OrganizationId) -> AsyncIterator[Process]:
    database, clock = PostgresDatabase(url, connections=2), Clock()
    feed = RowNotifications(shared=True, monotonic=clock)
    wakeups = PostgresWakeups(url, process=name, rows=feed)
    async with AsyncExitStack() as stack:
        stack.enter_context(patient())
        organizations = (an_organization(organization) for organization in first)
        stores = await stack.enter_async_context(opened(database, *organizations))
        system = SystemClock()
        authenticate = authenticating(stores, feed, system)
        running = Process(
            url=url,
            database=database,
            stores=kept(stores, feed),
            feed=feed,
            wakeups=wakeups,
            clock=clock,
            authenticate=authenticate,
            gateway=gateway_access(
                feed,
                address=ListeningAddress(None),
                external=None,
                sessions=stores.gateway_sessions,
                agents=kept(stores, feed).agents,
                authenticate=authenticate,
                caller_teams=teams_of(stores),
                limits=KeyLimits(every=None, rates=LocalRates(clock=system), organizations=stores.organizations),
                clock=system,
                wakeups=wakeups,
            ),
        )
        await wakeups.start()
        await running.until_fresh()
        yield running
        await wakeups.stop()


@pytest.fixture
async def two(postgres_databases: PostgresDatabases) -> AsyncIterator[tuple[Process, Process]]:
    """Two processes on a database with two organizations, an agent, a server with its catalog, a
    secret, a model provider, and a key of `TOKEN`."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_databases.fresh())
        writer = await stack.enter_async_context(process(url, "writer", ORG, OTHER_ORG))
        stores = writer.stores
        await stores.agents.add(an_agent(), an_audit_event(1, action=AuditAction.AGENT_CREATED))
        await stores.servers.add(a_server(), an_audit_event(2))
        await stores.catalogs.save(ORG, a_catalog())
        await stores.secrets.put(a_secret(), "first", an_audit_event(3))
        await stores.model_providers.add(a_provider("first"), an_audit_event(4))
        await stores.console_sessions.add(a_console_session())
        await stores.identity.add_key(a_key(token=TOKEN), an_audit_event(5))
        yield writer, await stack.enter_async_context(process(url, "reader"))


def a_secret() -> Secret:
    return Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START)


def a_provider(address: str, *, version: int = 1) -> ModelProvider:
    return ModelProvider(
        organization_id=ORG,
        name="acme",
        kind=ProviderKind.ANTHROPIC,
        base_url=f"https://{address}.example.com",
        api_key=None,
        created_at=START,
        updated_at=START,
        version=version,
    )


Write = Callable[[Stores], Awaitable[object]]
Read = Callable[[Stores], Awaitable[object]]
ENTRY = an_audit_event(100)


async def change_agent(stores: Stores) -> None:
    await stores.agents.save(replace(an_agent(), version=2), expected_version=1, audit=ENTRY)


async def change_organization(stores: Stores) -> None:
    changed = replace(an_organization(ORG), mcp_enabled=False, version=2)
    await stores.organizations.save(changed, expected_version=1, audit=(ENTRY,))


async def change_server(stores: Stores) -> None:
    await stores.servers.save(replace(a_server(), version=2), expected_version=1, audit=ENTRY)


async def change_catalog(stores: Stores) -> None:
    stored = await stores.catalogs.load(ORG, SERVER)
    assert stored is not None
    assert await stores.catalogs.save(ORG, replace(a_catalog(tools=(a_definition("new"),)), revision=stored.revision))


async def change_provider(stores: Stores) -> None:
    await stores.model_providers.save(a_provider("second", version=2), expected_version=1, audit=ENTRY)


CHANGES: dict[str, tuple[Write, Read]] = {
    "agent": (change_agent, lambda stores: stores.agents.get(ORG, AGENT)),
    "organization": (change_organization, lambda stores: stores.organizations.get(ORG)),
    "mcp_server": (change_server, lambda stores: stores.servers.get(ORG, SERVER)),
    "mcp_server_state": (change_catalog, lambda stores: stores.catalogs.load(ORG, SERVER)),
    "console_session": (
        lambda stores: stores.console_sessions.end(ORG, a_console_session().id, ENTRY),
        lambda stores: stores.console_sessions.get(ORG, a_console_session().id),
    ),
    "secret": (
        lambda stores: stores.secrets.put(a_secret(), "second", ENTRY),
        lambda stores: stores.secrets.value(ORG, "TOKEN"),
    ),
    "model_provider": (change_provider, lambda stores: stores.model_providers.all(ORG)),
}


@pytest.fixture(params=list(CHANGES))
def table(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.requirement("E6", "B5")
async def test_what_was_read_once_is_not_read_again(two: tuple[Process, Process], table: str) -> None:
    _, reader = two
    read = CHANGES[table][1]
    reader.clock.stop()
    await reader.until_fresh()
    before = await read(reader.stores)
    await reader.database.stop()
    await reader.until_fresh()
    assert await read(reader.stores) == before
    await reader.database.start()


@pytest.mark.requirement("E6", "C1")
async def test_what_another_process_changes_is_heard_of_and_read_again(
    two: tuple[Process, Process], table: str
) -> None:
    writer, reader = two
    write, read = CHANGES[table]
    before = await read(reader.stores)
    told = reader.told_of(table)
    await write(writer.stores)
    async with asyncio.timeout(SOON_S):
        await told.wait()
    after = await read(reader.stores)
    assert after != before
    assert after == await read(writer.stores)


@pytest.mark.requirement("E6", "C1")
async def test_a_process_that_hears_nothing_any_more_reads_again(two: tuple[Process, Process], table: str) -> None:
    writer, reader = two
    write, read = CHANGES[table]
    before = await read(reader.stores)
    await reader.wakeups.stop()
    await write(writer.stores)
    reader.clock.ahead_s += FRESH_S
    assert await read(reader.stores) != before


@pytest.mark.requirement("E6")
async def test_what_was_changed_while_the_feed_was_cut_is_read_again_once_it_is_back(
    two: tuple[Process, Process], table: str
) -> None:
    writer, reader = two
    write, read = CHANGES[table]
    before = await read(reader.stores)
    await reader.wakeups.stop()
    await write(writer.stores)
    back = PostgresWakeups(reader.url, process="reader", rows=reader.feed)
    await back.start()
    await reader.until_fresh()
    assert await read(reader.stores) != before
    await back.stop()


@pytest.mark.requirement("C6")
async def test_a_key_that_is_revoked_elsewhere_is_refused_as_soon_as_that_is_heard(
    two: tuple[Process, Process],
) -> None:
    writer, reader = two
    await reader.authenticate.execute(AuthenticateCommand(token=TOKEN))
    told = reader.told_of("api_key")
    assert await writer.stores.identity.revoke_key(ORG, a_key().id, ENTRY)
    async with asyncio.timeout(SOON_S):
        await told.wait()
    await assert_refused(reader)


@pytest.mark.requirement("C6")
async def test_a_key_that_is_revoked_elsewhere_is_refused_after_a_second_by_a_process_that_hears_nothing(
    two: tuple[Process, Process],
) -> None:
    writer, reader = two
    await reader.authenticate.execute(AuthenticateCommand(token=TOKEN))
    await reader.wakeups.stop()
    assert await writer.stores.identity.revoke_key(ORG, a_key().id, ENTRY)
    reader.clock.ahead_s += FRESH_S
    await assert_refused(reader)


@pytest.mark.requirement("C6")
async def test_the_key_of_a_request_is_read_once(two: tuple[Process, Process]) -> None:
    _, reader = two
    reader.clock.stop()
    first = await reader.authenticate.execute(AuthenticateCommand(token=TOKEN))
    await reader.database.stop()
    await reader.until_fresh()
    assert await reader.authenticate.execute(AuthenticateCommand(token=TOKEN)) == first
    await reader.database.start()


@pytest.mark.requirement("F5")
async def test_a_gateway_session_is_read_once_and_refused_as_soon_as_it_is_heard_that_it_was_revoked(
    two: tuple[Process, Process],
) -> None:
    writer, reader = two
    token = f"{SESSION_TOKEN_PREFIX}of-this-test"
    session = a_session(token_hash=hash_token(token), expires_at=datetime(2999, 1, 1, tzinfo=UTC))
    await writer.stores.gateway_sessions.add(session, an_audit_event(6), thread=OWN_THREAD)
    reader.clock.stop()
    assert await reader.gateway.open(token) == session
    await reader.database.stop()
    await reader.until_fresh()
    assert await reader.gateway.open(token) == session
    await reader.database.start()
    told = reader.told_of("gateway_session")
    assert await writer.stores.gateway_sessions.revoke(ORG, session.id, ENTRY)
    async with asyncio.timeout(SOON_S):
        await told.wait()
    with pytest.raises(ServiceError) as refused:
        await reader.gateway.open(token)
    assert refused.value.code == "token_invalid"


async def test_that_a_key_was_used_is_told_to_nobody(two: tuple[Process, Process]) -> None:
    writer, reader = two
    told_of_use = reader.told_of("api_key")
    await writer.stores.identity.record_uses({a_key().id: START})
    told_of_agent = reader.told_of("agent")
    await change_agent(writer.stores)
    async with asyncio.timeout(SOON_S):
        await told_of_agent.wait()
    assert not told_of_use.is_set()


@pytest.mark.requirement("E6")
async def test_a_change_that_is_undone_is_told_to_nobody(two: tuple[Process, Process]) -> None:
    writer, reader = two
    told = reader.told_of("organization")
    stale = replace(an_organization(ORG), version=7)
    with pytest.raises(ServiceError):
        await writer.stores.organizations.save(stale, expected_version=6, audit=(ENTRY,))
    told_of_agent = reader.told_of("agent")
    await change_agent(writer.stores)
    async with asyncio.timeout(SOON_S):
        await told_of_agent.wait()
    assert not told.is_set()


@pytest.mark.requirement("E6")
async def test_a_feed_that_is_cut_again_and_again_comes_back(
    two: tuple[Process, Process], postgres_databases: PostgresDatabases
) -> None:
    writer, reader = two
    for version in range(2, 6):
        await reader.until_fresh()
        assert (await reader.stores.agents.get(ORG, AGENT)) is not None
        changed = replace(an_agent(), version=version)
        told = reader.told_of("agent")
        postgres_databases.end_sessions()
        await _until_written(writer, changed.version)
        async with asyncio.timeout(SOON_S):
            await told.wait()
        found = await reader.stores.agents.get(ORG, AGENT)
        assert found is not None
        assert found.version == version


async def _until_written(writer: Process, version: int) -> None:
    """Cut connections may fail a write; it is tried again, as a client would."""
    async with asyncio.timeout(SOON_S):
        while True:
            try:
                await writer.stores.agents.save(
                    replace(an_agent(), version=version),
                    expected_version=version - 1,
                    audit=an_audit_event(100 + version),
                )
            except ServiceError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.05)
            else:
                return


async def assert_refused(reader: Process) -> None:
    with pytest.raises(ServiceError) as refused:
        await reader.authenticate.execute(AuthenticateCommand(token=TOKEN))
    assert refused.value.code == "token_invalid"
