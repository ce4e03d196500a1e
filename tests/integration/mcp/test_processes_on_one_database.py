"""Connections to MCP servers in two processes on one PostgreSQL database: known, ended and
authorized across both."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.account_secrets import AccountsWithSecrets, PersonFiles
from application.mcp.authorization import AuthorizationAnswer
from application.mcp.disconnect_account import DisconnectAccount, DisconnectAccountCommand
from application.mcp.ports import McpFailure, McpFailureKind, ServerState, ServerStatus
from application.mcp.server_reports import together
from domain.audit.event import AuditAction
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import Credentials, Isolation, McpServer
from domain.secrets.secret import Secret, SecretRef
from infrastructure.events.postgres_wakeups import PostgresWakeups
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.oauth.parts import OAuthParts
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.state_reporter import StateReporter
from infrastructure.mcp.transports.remote import RemoteClient
from infrastructure.mcp.wrappers.announced_connections import AnnouncedConnections
from infrastructure.persistence.cached import stores as cached
from infrastructure.persistence.cached.read_through import ReadThrough
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.persistence.mcp.server_reports import SqlServerReports
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.runtime.system import RandomIds, SystemClock
from infrastructure.secrets.redaction import Redactor
from tests.builders import KEY, ORG, START, an_audit_event, an_organization
from tests.contract.sql_legs import MirrorBox, kept, opened
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.integration.mcp.oauth_world import BY_PERSON, HERE, AuthorizationServer, ProtectedServer
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    LOOPBACK,
    PATIENCE_S,
    SERVERS,
    a_call,
    no_provider,
    plain_server,
    remote,
    sdk_connections,
    serving,
    started,
    text_of,
    until,
)
from tests.people_builders import USER, a_person, a_provider, a_user

pytestmark = pytest.mark.requirement("E6")


@dataclass(frozen=True, kw_only=True)
class Process:
    """What a process has to do with MCP servers."""

    stores: Stores
    connections: SdkMcpConnections
    announced: AnnouncedConnections
    reporter: StateReporter
    oauth: OAuthParts

    async def told(self, server: McpServer, state: ServerState) -> None:
        """Waits until the other process's report of the server is this."""
        async with asyncio.timeout(PATIENCE_S):
            status = await self.status(server)
            while status.state is not state:  # it is told through a table, which announces nothing
                await asyncio.sleep(0.02)
                status = await self.status(server)
        assert [process.name for process in status.processes] in ([], ["machine:other"])

    async def status(self, server: McpServer) -> ServerStatus:
        return together(self.connections.status(server), await self.reporter.of(server))

    async def who_am_i(self, server: McpServer) -> str:
        return text_of(await self.connections.call_tool(server, IN_RUN, a_call("whoami")))


@asynccontextmanager
async def process(url: str, name: str, clock: FixedClock) -> AsyncIterator[Process]:
    database = PostgresDatabase(url, connections=3)
    feed = RowNotifications(shared=True)
    wakeups = PostgresWakeups(url, process=name, rows=feed)
    async with AsyncExitStack() as stack:
        stores = kept(
            await stack.enter_async_context(opened(database, *([an_organization(ORG)] if name == "mine" else []))), feed
        )
        secrets = ReadThrough(stores.person_secrets, cached.PERSON_SECRETS, notifications=feed).cached
        stores = replace(stores, person_secrets=secrets)
        reports = SqlServerReports(database=database, clock=SystemClock())
        reporter = StateReporter(reports=reports, process=name, name=f"machine:{name}")
        await wakeups.start()
        stack.push_async_callback(wakeups.stop)

        async def find(organization_id: OrganizationId, server_id: McpServerId) -> McpServer | None:
            return await stores.servers.get(organization_id, server_id)

        oauth = OAuthParts(
            remote=RemoteClient(egress=LOOPBACK),
            store=SqlOAuthStore(database=database, box=MirrorBox()),
            secrets=SecretValues(secrets=InMemorySecretStore(InMemoryState()), known=KnownSecrets(Redactor())),
            find_server=find,
            find_provider=no_provider,
            address=ListeningAddress(HERE),
            clock=clock,
            is_told=feed.fresh,
        )
        feed.listen(oauth.forget_organization, "oauth_grant", "person_grant")
        stack.push_async_callback(oauth.close)
        connections = await stack.enter_async_context(
            sdk_connections(secrets=stores.secrets, person_secrets=secrets, oauth=oauth, on_status=reporter.changed)
        )
        announced = AnnouncedConnections(connections, announcements=wakeups)
        stack.push_async_callback(announced.close)
        telling = asyncio.create_task(reporter.keep(), name="reporter")
        yield Process(stores=stores, connections=connections, announced=announced, reporter=reporter, oauth=oauth)
        telling.cancel()
        await asyncio.wait([telling])
        await reporter.withdraw()


@dataclass(frozen=True, kw_only=True)
class Two:
    """Two processes; the database's name; a clock for tokens."""

    mine: Process
    other: Process
    clock: FixedClock

    async def add(self, server: McpServer) -> McpServer:
        await self.mine.stores.servers.add(server, an_audit_event(action=AuditAction.MCP_SERVER_CREATED))
        return server


@pytest.fixture
def database(postgres_databases: PostgresDatabases) -> Iterator[str]:
    with postgres_databases.fresh() as url:
        yield url


@pytest.fixture
async def two(database: str) -> AsyncIterator[Two]:
    clock = FixedClock()
    async with process(database, "mine", clock) as mine, process(database, "other", clock) as other:
        yield Two(mine=mine, other=other, clock=clock)
        await mine.connections.close()  # each looks whether tasks are left when it ends


async def test_a_process_without_connections_knows_how_the_servers_of_others_stand(two: Two) -> None:
    server = await two.add(plain_server(isolation=Isolation.SHARED))
    await two.other.connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
    await two.mine.told(server, ServerState.CONNECTED)

    async def reported() -> ServerStatus:
        [report] = await two.mine.reporter.of(server)
        return report.status

    async with asyncio.timeout(PATIENCE_S):
        found = await reported()
        while found != two.other.connections.status(server):  # the number of tools may be told later
            await asyncio.sleep(0.02)
            found = await reported()
        assert found.tool_count
    assert await two.other.reporter.of(server) == (), "what it says itself it knows better"
    await two.other.connections.forget(ORG, server.id)
    await two.mine.told(server, ServerState.DISCONNECTED)


async def test_what_went_wrong_elsewhere_is_told_with_its_reason_and_withdrawn_at_the_end(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infrastructure.mcp.state_reporter._WITHDRAW_S", PATIENCE_S)
    server = await two.add(started("no-such-command-anywhere"))
    with pytest.raises(McpFailure) as failed:
        await two.other.connections.call_tool(server, IN_RUN, a_call("count"))
    await two.mine.told(server, ServerState.ERROR)
    [report] = await two.mine.reporter.of(server)
    assert report.status.last_error == failed.value.detail
    await two.other.reporter.withdraw()
    await two.mine.told(server, ServerState.DISCONNECTED)


async def test_a_server_that_one_process_changes_is_closed_in_the_other_once_its_calls_are_done(two: Two) -> None:
    server = await two.add(plain_server(isolation=Isolation.SHARED))
    calling = asyncio.create_task(two.other.connections.call_tool(server, IN_RUN, a_call("hang", timeout_s=PATIENCE_S)))
    await until(lambda: two.other.connections.status(server).state is ServerState.CONNECTED)
    await two.mine.announced.forget(ORG, server.id)
    await until(lambda: two.other.connections.status(server).state is ServerState.DISCONNECTED)
    assert not calling.done()
    assert two.other.connections.connection_count == 1
    calling.cancel()
    await until(lambda: two.other.connections.connection_count == 0)


@pytest.mark.requirement("C7", "B12")
async def test_a_secret_that_one_process_changes_is_what_the_next_call_of_the_other_uses(two: Two) -> None:
    async def put(value: str) -> None:
        secret = Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START)
        await two.mine.stores.secrets.put(secret, value, an_audit_event(len(value)))

    async def size() -> str:
        return text_of(await two.other.connections.call_tool(server, IN_RUN, a_call("tell")))

    await put("first value")
    server = await two.add(
        started(
            *ISOLATED_PYTHON,
            str(SERVERS / "telling_server.py"),
            env={"TOKEN": SecretRef("TOKEN")},
            isolation=Isolation.SHARED,
        )
    )
    assert f'"TOKEN": {len("first value")}' in await size()
    await put("a second, longer value")
    await two.mine.announced.forget(ORG, server.id)
    await until(lambda: two.other.connections.status(server).state is ServerState.DISCONNECTED)
    assert f'"TOKEN": {len("a second, longer value")}' in await size()


async def test_a_run_that_one_process_ends_gives_up_the_connection_that_the_other_holds_for_it(two: Two) -> None:
    server = await two.add(plain_server())
    await two.other.connections.call_tool(server, IN_RUN, a_call("count"))
    thread = replace(IN_RUN, run_id=None)
    assert two.other.connections.connection_count == 1
    await two.mine.announced.release(thread)
    await two.mine.announced.release(IN_RUN)
    await until(lambda: two.other.connections.connection_count == 0)


@asynccontextmanager
async def protected_server() -> AsyncIterator[tuple[AuthorizationServer, McpServer]]:
    authorization = AuthorizationServer()
    protected = ProtectedServer(trusted=authorization)
    async with serving(authorization.app()) as issuer, serving(protected.app()) as url:
        authorization.url, protected.url = issuer, f"{url}/mcp"
        yield authorization, remote(protected.url, auth=BY_PERSON)


async def authorize(process: Process, authorization: AuthorizationServer, server: McpServer) -> None:
    """A person agrees, in this process."""
    request = await process.oauth.authorizer.begin(server, KEY)
    answer = authorization.authorize(request.url)
    await process.oauth.authorizer.complete(
        AuthorizationAnswer(state=answer["state"], code=answer["code"], issuer=answer["iss"])
    )


@pytest.mark.requirement("B12")
async def test_a_person_authorizes_in_one_process_and_the_other_has_the_token(two: Two) -> None:
    async with protected_server() as (authorization, server):
        await two.add(server)
        with pytest.raises(McpFailure):
            await two.other.who_am_i(server)
        await two.mine.told(server, ServerState.NEEDS_AUTH)
        await authorize(two.mine, authorization, server)
        assert await two.other.who_am_i(server) == "access-token-1"
        await two.mine.told(server, ServerState.CONNECTED)


@pytest.mark.requirement("B12")
async def test_no_refresh_token_is_used_twice_however_many_processes_need_a_new_token(two: Two) -> None:
    async with protected_server() as (authorization, server):
        await two.add(server)
        await authorize(two.mine, authorization, server)
        assert [await process.who_am_i(server) for process in (two.mine, two.other)] == ["access-token-1"] * 2
        for number in (2, 3, 4):
            authorization.withdraw_access()
            authorization.gate, authorization.waiting = asyncio.Event(), 0
            calls = [asyncio.create_task(process.who_am_i(server)) for process in (two.mine, two.other)]
            await until(lambda: authorization.waiting)
            authorization.gate.set()
            assert await asyncio.gather(*calls) == [f"access-token-{number}"] * 2
        used = [form["refresh_token"] for form in authorization.forms if form["grant_type"] == "refresh_token"]
        assert used == ["refresh-token-1", "refresh-token-2", "refresh-token-3"]


@pytest.mark.requirement("B12")
async def test_a_token_that_ends_is_renewed_by_one_process_for_both(two: Two) -> None:
    async with protected_server() as (authorization, server):
        await two.add(server)
        await authorize(two.mine, authorization, server)
        await two.other.who_am_i(server)
        two.clock.advance(3600)
        tokens = await asyncio.gather(*(process.who_am_i(server) for process in (two.mine, two.other)))
        assert tokens == ["access-token-2"] * 2
        assert authorization.asked["refresh_token"] == 1


@pytest.mark.requirement("P3")
async def test_an_account_that_its_person_disconnects_in_one_process_ends_its_connection_in_the_other(
    two: Two, mocker: MockerFixture
) -> None:
    async with protected_server() as (authorization, shared):
        server = replace(shared, config=replace(shared.config, credentials=Credentials.PERSON))
        stores = two.mine.stores
        await stores.identity_providers.add(a_provider(), an_audit_event(2))
        await stores.user_access.add(a_user(), an_audit_event(3))
        await two.add(server)
        await authorize(two.mine, authorization, server.acting_for(USER))
        as_person = replace(IN_RUN, person_id=USER)
        for each in (two.mine, two.other):
            await each.connections.call_tool(server, as_person, a_call("whoami"))
            assert each.connections.connection_count == 1
        disconnect = DisconnectAccount(
            servers=stores.servers,
            person_secrets=stores.person_secrets,
            authorizer=AccountsWithSecrets(grants=two.mine.oauth.authorizer, person_secrets=stores.person_secrets),
            connections=two.mine.announced,
            person_files=mocker.create_autospec(PersonFiles, instance=True),
            audit_log=stores.audit,
            clock=two.clock,
            ids=RandomIds(),
        )
        await disconnect.execute(DisconnectAccountCommand(principal=a_person(), server=server.id))
        await until(lambda: two.mine.connections.connection_count == 0)
        await until(lambda: two.other.connections.connection_count == 0)
        with pytest.raises(McpFailure) as refused:
            await two.other.connections.call_tool(server, as_person, a_call("whoami"))
        assert refused.value.kind is McpFailureKind.NEEDS_AUTH
