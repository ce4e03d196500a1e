"""AuthorizeMcpServer: begin the authorization of a remote server by a person."""

from dataclasses import dataclass

from application.mcp.authorization import AuthorizationRequest, McpAuthorizer
from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.server import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizeMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class AuthorizeMcpServer:
    """Rules:
    - Admins begin authorizations.
    - The person decides at the authorization server, with their own account there; the grant serves
      the whole organization.
    - A server with credentials of each person has no grant of the organization (`ConnectAccount`).
    - The URL is valid once, for a few minutes.

    Raises: FORBIDDEN, NOT_FOUND, CONFLICT `mcp_server_auth_mismatch`, `not_listening`, UNAVAILABLE
    `mcp_authorization_unavailable`.
    """

    def __init__(self, *, servers: McpServerStore, authorizer: McpAuthorizer) -> None:
        self._servers = servers
        self._authorizer = authorizer

    async def execute(self, command: AuthorizeMcpServerCommand) -> AuthorizationRequest:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal, command.server)
        if not isinstance(server.config.auth, AuthorizationCodeAuth):
            raise conflict(
                "mcp_server_auth_mismatch",
                f"The MCP server {server.config.slug!r} is not authorized by a person: "
                "its auth is not of type oauth_authorization_code.",
            )
        if server.config.credentials is Credentials.PERSON:
            raise conflict(
                "mcp_server_auth_mismatch",
                f"The MCP server {server.config.slug!r} is used with each person's own account: they connect it themselves.",
            )
        return await self._authorizer.begin(server, principal.key_id)
