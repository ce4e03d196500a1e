"""AuthorizeMcpServer: who may begin an authorization by a person, and for which servers."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.authorization import AuthorizationRequest, McpAuthorizer
from application.mcp.authorize_mcp_server import AuthorizeMcpServer, AuthorizeMcpServerCommand
from application.mcp.ports import McpServerStore
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.auth import AuthorizationCodeAuth, BearerAuth, ClientCredentialsAuth, ServerAuth
from domain.mcp.server import Credentials, McpServer, McpServerConfig, McpServerKind
from tests.builders import a_server, after
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

REQUEST = AuthorizationRequest(url="https://auth.example/authorize?state=s", expires_at=after(600))


def a_remote_server(auth: ServerAuth | None) -> McpServer:
    config = McpServerConfig(slug="mail", kind=McpServerKind.HTTP, url="https://mail.example/mcp", auth=auth)
    return a_server(config=config)


class Ports:
    """The server `mail`, which a person authorizes, and an authorizer that has an URL for that
    person."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.server = a_remote_server(AuthorizationCodeAuth())
        self.authorizer: MockType = mocker.create_autospec(McpAuthorizer, instance=True)
        self.authorizer.begin.return_value = REQUEST

    async def authorize(self, principal: Principal, *, servers: McpServerStore | None = None) -> AuthorizationRequest:
        stored = servers or InMemoryMcpServerStore(a_state_with_servers(self.server))
        authorizing = AuthorizeMcpServer(servers=stored, authorizer=self.authorizer)
        return await authorizing.execute(AuthorizeMcpServerCommand(principal=principal, server="mail"))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B12")
async def test_an_admin_gets_the_url_for_a_person_and_its_expiry(ports: Ports) -> None:
    assert await ports.authorize(a_principal()) == REQUEST
    ports.authorizer.begin.assert_awaited_once_with(ports.server, "key_admin")


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "auth",
    [None, BearerAuth(token="t"), ClientCredentialsAuth(client_id="c", client_secret="s")],
    ids=["none", "bearer", "client credentials"],
)
async def test_a_server_with_another_kind_of_auth_is_not_authorized_by_a_person(
    ports: Ports, auth: ServerAuth | None
) -> None:
    ports.server = a_remote_server(auth)

    with refused("mcp_server_auth_mismatch"):
        await ports.authorize(a_principal())

    ports.authorizer.begin.assert_not_awaited()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_begin_an_authorization(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.authorize(a_principal(role))

    ports.authorizer.begin.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_authorized(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.authorize(a_stranger())

    ports.authorizer.begin.assert_not_awaited()


async def test_an_authorization_server_that_does_not_answer_is_unavailable(ports: Ports) -> None:
    ports.authorizer.begin.side_effect = ServiceError(
        "mcp_authorization_unavailable", ErrorKind.UNAVAILABLE, "The authorization server did not answer."
    )

    with refused("mcp_authorization_unavailable"):
        await ports.authorize(a_principal())


async def test_a_storage_failure_begins_no_authorization(ports: Ports, mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.authorize(a_principal(), servers=servers)

    ports.authorizer.begin.assert_not_awaited()


@pytest.mark.requirement("P3")
async def test_a_server_of_each_persons_account_is_not_authorized_for_the_organization(ports: Ports) -> None:
    config = replace(ports.server.config, credentials=Credentials.PERSON)
    ports.server = replace(ports.server, config=config)

    with refused("mcp_server_auth_mismatch"):
        await ports.authorize(a_principal())

    ports.authorizer.begin.assert_not_awaited()
