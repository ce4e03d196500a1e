"""ConnectAccount: begin the authorization of an MCP server with the caller's own account."""

from dataclasses import dataclass, field

from application.mcp.account_server import account_server
from application.mcp.authorization import AuthorizationRequest, McpAuthorizer
from application.mcp.ports import McpServerStore
from domain.errors import conflict
from domain.identity.api_key import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectAccountCommand:
    """`server` is an id or a slug. `browser` is a secret of the browser that begins."""

    principal: Principal
    server: str
    browser: str = field(repr=False)


class ConnectAccount:
    """Rules:
    - People connect their own account, with any role; keys have none.
    - Only for a server with credentials of each person, from an authorization server: not from what
      they give, nor their sign-in.
    - The browser that begins is the one that brings the answer: no attacker gets a grant by sending
      others to the authorization server.
    - An account that is connected already is replaced, with what was granted before and what the
      server requires now.

    Raises: FORBIDDEN `person_required`, NOT_FOUND, CONFLICT `mcp_server_auth_mismatch`,
    `not_listening`, UNAVAILABLE `mcp_authorization_unavailable`.
    """

    def __init__(self, *, servers: McpServerStore, authorizer: McpAuthorizer) -> None:
        self._servers = servers
        self._authorizer = authorizer

    async def execute(self, command: ConnectAccountCommand) -> AuthorizationRequest:
        server = await account_server(self._servers, command.principal, command.server)
        if server.config.person_secrets or server.config.is_on_behalf:
            way = "Sign in again" if server.config.is_on_behalf else "Give it your secrets"
            raise conflict(
                "mcp_server_auth_mismatch",
                f"The MCP server {server.config.slug!r} is not connected by an authorization server. {way}.",
            )
        return await self._authorizer.begin(server, command.principal.key_id, browser=command.browser)
