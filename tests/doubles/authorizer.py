"""Authorizing servers without an authorization server: whoever comes back with the state has agreed."""

from datetime import datetime, timedelta

from application.mcp.authorization import AuthorizationAnswer, AuthorizationRequest, AuthorizedServer
from domain.errors import invalid
from domain.ids import ApiKeyId
from domain.mcp.server import McpServer

ISSUER = "https://auth.example.org"


class InMemoryAuthorizer:
    """The `McpAuthorizer` port. `begun` holds what is under way, by state."""

    def __init__(self, *, expires_at: datetime) -> None:
        self._expires_at = expires_at + timedelta(minutes=10)
        self.begun: dict[str, tuple[McpServer, ApiKeyId]] = {}

    async def begin(self, server: McpServer, key_id: ApiKeyId) -> AuthorizationRequest:
        """Where to send a person."""
        state = f"state-{len(self.begun) + 1}"
        self.begun[state] = (server, key_id)
        return AuthorizationRequest(url=f"{ISSUER}/authorize?state={state}", expires_at=self._expires_at)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """Take the answer, once."""
        if answer.state not in self.begun:
            raise invalid("authorization_unknown", "This authorization was not begun here.")
        server, key_id = self.begun.pop(answer.state)
        if answer.code is None:
            raise invalid("authorization_refused", "The authorization server did not authorize (access_denied).")
        return AuthorizedServer(server=server, key_id=key_id, issuer=answer.issuer or ISSUER)
