"""FinishMcpAuthorization: what an answer of an authorization server changes, and what a refused one does not."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditLog
from application.mcp.authorization import AuthorizationAnswer, McpAuthorizer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.ports import McpConnections
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, invalid
from tests.builders import KEY, ORG, SERVER, START, a_server
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
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

    async def finish(self, answer: AuthorizationAnswer = ANSWER) -> str:
        finishing = FinishMcpAuthorization(
            authorizer=self.authorizer,
            connections=self.connections,
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
    assert await ports.finish() == "files"
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
