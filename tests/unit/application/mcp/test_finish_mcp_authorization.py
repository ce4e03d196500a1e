"""FinishMcpAuthorization: what an answer of an authorization server changes, and what a refused one
does not."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditLog
from application.mcp.account_connected import AccountConnected, AccountWaiters
from application.mcp.authorization import AuthorizationAnswer, McpAuthorizer
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpConnections, McpFailure, McpFailureKind
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, invalid
from domain.ids import ApiKeyId
from domain.mcp.server import McpServer
from tests.builders import KEY, ORG, SERVER, START, a_catalog, a_server
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_person_server
from tests.people_builders import USER
from tests.refusals import refused, storage_away

ANSWER = AuthorizationAnswer(state="state-1", code="c0de", issuer=ISSUER)
DENIED = AuthorizationAnswer(state="state-1", error="access_denied")


class Ports:
    """An authorization of `files` that KEY began, with state `state-1`."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.authorizer: McpAuthorizer = InMemoryAuthorizer(expires_at=START)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.audit_log: AuditLog = InMemoryAuditLog(self.state)
        self.catalogs: McpCatalogStore = InMemoryMcpCatalogStore(self.state)
        self.updater: MockType = mocker.create_autospec(CatalogUpdater, instance=True)
        self.waiters: MockType = mocker.create_autospec(AccountWaiters, instance=True)

    async def finish(self, answer: AuthorizationAnswer = ANSWER) -> McpServer:
        finishing = FinishMcpAuthorization(
            authorizer=self.authorizer,
            connections=self.connections,
            accounts=AccountConnected(
                connections=self.connections,
                catalogs=self.catalogs,
                catalog_updater=self.updater,
                waiters=(self.waiters,),
            ),
            audit_log=self.audit_log,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        return await finishing.execute(answer)

    def assert_nothing_changed(self) -> None:
        self.connections.forget.assert_not_awaited()
        assert self.state.audit == {}


@pytest.fixture
async def ports(mocker: MockerFixture) -> Ports:
    ports = Ports(mocker)
    await ports.authorizer.begin(a_server(), KEY)
    return ports


@pytest.mark.requirement("B12")
async def test_an_authorized_server_connects_again_with_the_new_grant(ports: Ports) -> None:
    assert await ports.finish() == a_server()
    ports.connections.forget.assert_awaited_once_with(ORG, SERVER)


@pytest.mark.requirement("B12", "C5")
async def test_an_authorization_is_audited_as_done_by_the_key_that_began_it(ports: Ports) -> None:
    await ports.finish()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.organization_id) == (AuditAction.MCP_SERVER_AUTHORIZED, KEY, ORG)
    assert (entry.resource, entry.server_id, entry.at) == (SERVER, SERVER, START)
    assert entry.details == {"slug": "files", "issuer": ISSUER}
    assert not [secret for secret in ("c0de", "state-1") if secret in repr(entry)]


@pytest.mark.requirement("B12")
async def test_an_answer_is_taken_once(ports: Ports) -> None:
    await ports.finish()

    with refused("authorization_unknown"):
        await ports.finish()

    assert len(ports.state.audit) == 1
    ports.connections.forget.assert_awaited_once()


@pytest.mark.requirement("B12")
async def test_an_answer_to_nothing_changes_nothing(ports: Ports) -> None:
    with refused("authorization_unknown"):
        await ports.finish(AuthorizationAnswer(state="guessed", code="c0de"))

    ports.assert_nothing_changed()


@pytest.mark.requirement("B12")
async def test_a_person_who_does_not_agree_changes_nothing(ports: Ports) -> None:
    with refused("authorization_refused"):
        await ports.finish(DENIED)

    ports.assert_nothing_changed()


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "failure",
    [
        invalid("authorization_mixed_up", "Another authorization server answered."),
        invalid("authorization_outdated", "The server was changed since."),
        ServiceError("mcp_authorization_unavailable", ErrorKind.UNAVAILABLE, "No token was issued."),
    ],
    ids=lambda failure: failure.code,
)
async def test_an_answer_that_is_not_accepted_changes_nothing(
    ports: Ports, mocker: MockerFixture, failure: ServiceError
) -> None:
    ports.authorizer = mocker.create_autospec(McpAuthorizer, instance=True)
    ports.authorizer.complete.side_effect = failure

    with refused(failure.code):
        await ports.finish()

    ports.assert_nothing_changed()


async def test_a_grant_is_used_even_if_its_audit_entry_cannot_be_stored(ports: Ports, mocker: MockerFixture) -> None:
    ports.audit_log = mocker.create_autospec(AuditLog, instance=True)
    ports.audit_log.record.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.finish()

    ports.connections.forget.assert_awaited_once_with(ORG, SERVER)


class OfPerson(Ports):
    """An authorization of `tickets` that a person began in a browser, with state `state-1`."""

    async def begun(self) -> McpServer:
        server = a_person_server().acting_for(USER)
        self.state.servers[server.id] = server
        await self.authorizer.begin(server, ApiKeyId(USER), browser="browser")
        return server


CONNECTED = replace(ANSWER, browser="browser")


@pytest.mark.requirement("P3")
async def test_a_connected_account_of_a_person_continues_what_waits_for_it(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    server = await ports.begun()

    assert await ports.finish(CONNECTED) == server

    ports.waiters.connected.assert_awaited_once_with(server)
    ports.connections.forget.assert_not_awaited()
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.ACCOUNT_CONNECTED, USER, server.id)


@pytest.mark.requirement("P3")
async def test_tools_that_were_never_listed_are_listed_with_the_first_account(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    server = await ports.begun()

    await ports.finish(CONNECTED)

    scope = ConnectionScope(organization_id=ORG, person_id=USER)
    ports.updater.relist.assert_awaited_once_with(server, scope, timeout_s=10.0)


@pytest.mark.requirement("P3")
async def test_tools_that_are_listed_already_stay(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    server = await ports.begun()
    await ports.catalogs.save(ORG, replace(a_catalog(), server_id=server.id, server_version=server.version))

    await ports.finish(CONNECTED)

    ports.updater.relist.assert_not_awaited()


@pytest.mark.requirement("P3")
@pytest.mark.parametrize(
    "failure",
    [
        McpFailure(McpFailureKind.TIMEOUT, "The server did not finish in time."),
        storage_away(),
        RuntimeError("a defect"),
    ],
    ids=repr,
)
async def test_an_account_counts_though_its_server_lists_no_tools_now(
    mocker: MockerFixture, failure: Exception
) -> None:
    ports = OfPerson(mocker)
    server = await ports.begun()
    ports.updater.relist.side_effect = failure

    assert await ports.finish(CONNECTED) == server

    ports.waiters.connected.assert_awaited_once()


@pytest.mark.requirement("P3")
async def test_runs_that_wait_do_not_wait_for_the_listing(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    await ports.begun()
    seen: list[int] = []
    ports.updater.relist.side_effect = lambda *_, **__: seen.append(ports.waiters.connected.await_count)

    await ports.finish(CONNECTED)

    assert seen == [1]


@pytest.mark.requirement("P3")
async def test_a_consent_is_audited_though_what_waits_could_not_continue(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    await ports.begun()
    ports.waiters.connected.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.finish(CONNECTED)

    assert [entry.action for entry in ports.state.audit.values()] == [AuditAction.ACCOUNT_CONNECTED]


@pytest.mark.requirement("P3")
async def test_another_account_of_a_person_is_used_with_new_connections(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    server = await ports.begun()
    await ports.finish(CONNECTED)
    await ports.authorizer.begin(server, ApiKeyId(USER), browser="browser")

    await ports.finish(replace(CONNECTED, state="state-2"))

    ports.connections.forget.assert_awaited_once_with(ORG, server.id)


@pytest.mark.requirement("P3")
async def test_a_consent_in_another_browser_continues_nothing(mocker: MockerFixture) -> None:
    ports = OfPerson(mocker)
    await ports.begun()

    with refused("authorization_elsewhere"):
        await ports.finish(replace(ANSWER, browser="another"))

    ports.waiters.connected.assert_not_awaited()
    assert ports.state.audit == {}
