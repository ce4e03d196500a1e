"""Builders of registered MCP servers and their stored state: name what the test is about, leave the
rest."""

from dataclasses import replace

from application.mcp.mcp_switch import McpSwitch
from application.mcp.server_certificates import ServerCertificates
from application.tools.ask_for_account import AskForAccount
from domain.ids import McpServerId
from domain.mcp.auth import AuthorizationCodeAuth, TokenExchangeAuth
from domain.mcp.installation import Installation
from domain.mcp.server import Credentials, McpServer, McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from domain.tools.tool import McpBinding, Tool
from infrastructure.identity.signing_keys import fault_of_signing_key
from infrastructure.mcp.oauth.grants import Grant, OAuthClient
from infrastructure.mcp.transports.certificates import read_certificates
from infrastructure.runtime.public_address import ListeningAddress
from tests.builders import ORG, OTHER_ORG, SERVER, START, a_server, a_tool, after, an_organization
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock

ACCOUNTS = AskForAccount(address=ListeningAddress("https://here"), authorizer=InMemoryAuthorizer(expires_at=START))
PERSON_SERVER = McpServerId("mcp_tickets")
INSTALLATION = Installation(version="1.2.3", location="org/mcp/ins_1", installed_at=START)
PACKAGE = McpServerConfig(slug="time", kind=McpServerKind.PYTHON, package="mcp-server-time", version="1.2.3")
"""A server that has to be installed before it starts."""


def a_package_server(
    config: McpServerConfig = PACKAGE, *, version: int = 1, installation: Installation | None = None
) -> McpServer:
    """A server that is installed from a package, if it has an `installation`."""
    return replace(a_server(config=config, version=version), installation=installation)


def a_state_with_servers(*servers: McpServer) -> InMemoryState:
    """In-memory tables that hold these servers."""
    state = InMemoryState()
    state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
    state.servers = {server.id: server for server in servers}
    return state


def a_switch(state: InMemoryState) -> McpSwitch:
    """MCP is switched on; organizations of the state may have the kinds of servers that they
    name."""
    return McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(state))


def permit_kinds(state: InMemoryState, *kinds: str) -> None:
    """The organization may have these kinds of servers only."""
    state.organizations[ORG] = replace(state.organizations[ORG], mcp_kinds=kinds)


def a_person_tool() -> Tool:
    """`mcp__files__echo` of a server that is used with each person's own account."""
    return a_tool(mcp=McpBinding(server_id=SERVER, server_slug="files", tool_name="echo", own_accounts=True))


def a_secrets_server(*names: str, url: str = "https://tickets.example/mcp", slug: str = "tickets") -> McpServer:
    """The remote server `tickets`, which takes these secrets of each person, `token` if none is
    named."""
    config = McpServerConfig(
        slug=slug,
        kind=McpServerKind.HTTP,
        url=url,
        headers={f"X-{name}": SecretRef(f"person:{name}") for name in names or ("token",)},
        credentials=Credentials.PERSON,
    )
    return replace(a_server(config=config), id=PERSON_SERVER)


def a_started_secrets_server() -> McpServer:
    """The started server `tickets`, a program that takes a `token` of each person."""
    config = McpServerConfig(
        slug="tickets",
        kind=McpServerKind.CUSTOM,
        command="tickets-server",
        args=("--stdio",),
        env={"TOKEN": SecretRef("person:token")},
        credentials=Credentials.PERSON,
    )
    return replace(a_server(config=config), id=PERSON_SERVER)


def a_person_server(credentials: Credentials = Credentials.PERSON) -> McpServer:
    """The remote server `tickets`, which is used with each person's own account."""
    config = McpServerConfig(
        slug="tickets",
        kind=McpServerKind.HTTP,
        url="https://tickets.example/mcp",
        auth=AuthorizationCodeAuth(),
        credentials=credentials,
    )
    return replace(a_server(config=config), id=PERSON_SERVER)


def an_on_behalf_server(id: McpServerId = PERSON_SERVER, *, slug: str = "tickets", enabled: bool = True) -> McpServer:
    """The remote server `tickets`, which is used on behalf of each person who signs in."""
    config = replace(a_person_server().config, slug=slug, auth=TokenExchangeAuth(), enabled=enabled)
    return replace(a_person_server(), id=id, config=config)


def certificates_of(state: InMemoryState) -> ServerCertificates:
    """Certificates are read as by the service."""
    return ServerCertificates(
        secrets=InMemorySecretStore(state),
        read=read_certificates,
        fault_of_key=fault_of_signing_key,
        clock=FixedClock(),
    )


def a_grant() -> Grant:
    """Tokens of an authorization server."""
    client = OAuthClient(
        client_id="registered",
        auth_method="client_secret_basic",
        secret="client-s3cret",
        redirect_uri="https://here/back",
    )
    return Grant(
        binding="b1",
        issuer="https://auth.example.org",
        resource="https://mcp.example.org/mcp",
        token_endpoint="https://auth.example.org/token",
        client=client,
        scope="a b",
        obtained_at=after(1),
        expires_at=after(3601),
        access_token="access-s3cret",
        refresh_token="refresh-s3cret",
    )
