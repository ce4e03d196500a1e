"""DisconnectAccount: people delete their own tokens, and nobody else's."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.account_secrets import PersonFiles
from application.mcp.authorization import Account
from application.mcp.disconnect_account import DisconnectAccount, DisconnectAccountCommand
from application.mcp.ports import McpConnections
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from domain.mcp.server import Credentials, McpServer
from tests.builders import ORG, START
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_person_server, a_started_secrets_server, a_state_with_servers
from tests.people_builders import USER, a_person
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")

ACCOUNT = Account(issuer=ISSUER, scope=None, renewed_at=START)
OTHER = UserId("usr_other")


class Ports:
    """Two persons have connected `tickets`."""

    def __init__(self, mocker: MockerFixture, server: McpServer | None = None) -> None:
        self.server = server or a_person_server()
        self.state = a_state_with_servers(self.server)
        self.person_secrets = InMemoryPersonSecretStore(self.state)
        self.authorizer = InMemoryAuthorizer(expires_at=START)
        self.authorizer.accounts = {(self.server.id, person): ACCOUNT for person in (USER, OTHER)}
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.files: MockType = mocker.create_autospec(PersonFiles, instance=True)

    async def disconnect(self, principal: Principal) -> None:
        use_case = DisconnectAccount(
            servers=InMemoryMcpServerStore(self.state),
            person_secrets=self.person_secrets,
            authorizer=self.authorizer,
            connections=self.connections,
            person_files=self.files,
            audit_log=InMemoryAuditLog(self.state),
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        await use_case.execute(DisconnectAccountCommand(principal=principal, server="tickets"))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_a_person_disconnects_their_own_account_and_it_is_audited(ports: Ports) -> None:
    await ports.disconnect(a_person())
    assert ports.authorizer.accounts == {(ports.server.id, OTHER): ACCOUNT}
    ports.connections.forget.assert_awaited_once_with(ORG, ports.server.id)
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.ACCOUNT_DISCONNECTED, USER, ports.server.id)


async def test_a_person_who_disconnects_from_a_started_server_takes_their_files_and_leaves_connections_of_others(
    mocker: MockerFixture,
) -> None:
    ports = Ports(mocker, a_started_secrets_server())
    await ports.disconnect(a_person())
    ports.files.remove.assert_awaited_once_with(ports.server.acting_for(USER))
    ports.connections.forget.assert_not_awaited()


async def test_what_is_kept_for_a_server_that_became_one_of_the_organization_is_disconnected_too(
    mocker: MockerFixture,
) -> None:
    ports = Ports(mocker, a_person_server(Credentials.ORGANIZATION))
    await ports.disconnect(a_person())
    assert ports.authorizer.accounts == {(ports.server.id, OTHER): ACCOUNT}
    [called] = ports.files.remove.await_args_list
    assert called.args[0].person_id == USER
    ports.connections.forget.assert_not_awaited()
    with refused("mcp_server_auth_mismatch"):
        await ports.disconnect(a_person())


async def test_what_is_kept_for_a_server_of_a_group_that_the_person_left_is_disconnected_too(
    mocker: MockerFixture,
) -> None:
    server = a_started_secrets_server()
    ports = Ports(mocker, replace(server, config=replace(server.config, team="support")))
    owner = AccountOwner(ORG, server.id, USER)
    given = GivenSecrets(binding="b", revision="rev_1", given_at=START, values={"token": "s3cret"})
    ports.person_secrets.given[owner] = given
    await ports.disconnect(a_person())
    assert ports.authorizer.accounts == {(ports.server.id, OTHER): ACCOUNT}
    assert [entry.actor for entry in ports.state.audit.values()] == [USER]
    ports.connections.forget.assert_not_awaited()
    await ports.person_secrets.remove(owner)
    with refused("mcp_server_not_found"):
        await ports.disconnect(a_person())


async def test_who_gave_nothing_for_a_server_of_a_group_of_others_disconnects_nothing_there(
    mocker: MockerFixture,
) -> None:
    server = a_person_server()
    ports = Ports(mocker, replace(server, config=replace(server.config, team="board")))
    with refused("mcp_server_not_found"):
        await ports.disconnect(a_person())
    assert (USER in {person for _, person in ports.authorizer.accounts}, ports.state.audit) == (True, {})
    ports.connections.forget.assert_not_awaited()


async def test_disconnecting_is_audited_though_files_cannot_be_removed(ports: Ports) -> None:
    ports.files.remove.side_effect = OSError("no space")
    with pytest.raises(OSError, match="no space"):
        await ports.disconnect(a_person())
    assert len(ports.state.audit) == 1


async def test_an_account_that_is_not_connected_is_not_found(ports: Ports) -> None:
    await ports.disconnect(a_person())
    with refused("account_not_found"):
        await ports.disconnect(a_person())
    assert len(ports.state.audit) == 1


async def test_a_key_has_no_account_to_disconnect(ports: Ports) -> None:
    with refused("person_required"):
        await ports.disconnect(a_principal())
