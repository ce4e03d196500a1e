"""Authorizing servers without an authorization server: whoever comes back with the state has
agreed."""

from datetime import datetime, timedelta

from application.mcp.authorization import (
    Account,
    AuthorizationAnswer,
    AuthorizationRequest,
    AuthorizedServer,
    PersonSignIn,
)
from domain.errors import invalid
from domain.ids import ApiKeyId, McpServerId, UserId
from domain.mcp.server import McpServer

ISSUER = "https://auth.example.org"


class InMemoryAuthorizer:
    """The `McpAuthorizer` port. `begun` holds what is under way, by state."""

    def __init__(self, *, expires_at: datetime) -> None:
        self._begun_at = expires_at
        self._expires_at = expires_at + timedelta(minutes=10)
        self.begun: dict[str, tuple[McpServer, ApiKeyId]] = {}
        self.browsers: dict[str, str | None] = {}
        self.sign_ins: list[tuple[McpServer, PersonSignIn]] = []
        self.accounts: dict[tuple[McpServerId, UserId | None], Account] = {}
        self._used_at: dict[tuple[McpServerId, UserId | None], tuple[object, ...]] = {}

    async def begin(self, server: McpServer, key_id: ApiKeyId, *, browser: str | None = None) -> AuthorizationRequest:
        """Where to send a person."""
        state = f"state-{len(self.browsers) + 1}"
        self.browsers[state] = browser
        self.begun[state] = (server, key_id)
        return AuthorizationRequest(url=f"{ISSUER}/authorize?state={state}", expires_at=self._expires_at)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """Take the answer, once."""
        if answer.state not in self.begun:
            raise invalid("authorization_unknown", "This authorization was not begun here.")
        server, key_id = self.begun.pop(answer.state)
        if self.browsers[answer.state] not in (None, answer.browser):
            raise invalid("authorization_elsewhere", "This authorization was begun in another browser.")
        if answer.code is None:
            raise invalid("authorization_refused", "The authorization server did not authorize (access_denied).")
        issuer = answer.issuer or ISSUER
        had_grant = (server.id, server.person_id) in self.accounts
        self._connect(server, issuer)
        return AuthorizedServer(server=server, key_id=key_id, issuer=issuer, had_grant=had_grant)

    async def signed_in(self, server: McpServer, sign_in: PersonSignIn) -> bool:
        """The sign-in is the account."""
        self.sign_ins.append((server, sign_in))
        self._connect(server, sign_in.issuer)
        return True

    async def account(self, server: McpServer) -> Account | None:
        """The account of who came back; None once the server has another address or `auth`."""
        owner = (server.id, server.person_id)
        return self.accounts.get(owner) if self._used_at.get(owner, _place(server)) == _place(server) else None

    async def disconnect(self, server: McpServer) -> bool:
        """Forget the account."""
        return self.accounts.pop((server.id, server.person_id), None) is not None

    def _connect(self, server: McpServer, issuer: str) -> None:
        owner = (server.id, server.person_id)
        self.accounts[owner] = Account(issuer=issuer, scope=None, renewed_at=self._begun_at)
        self._used_at[owner] = _place(server)


def _place(server: McpServer) -> tuple[object, ...]:
    return server.config.url, server.config.auth
