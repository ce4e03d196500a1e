"""Port of the authorization of MCP servers by a person in a browser. A server that acts for a
person (`McpServer.acting_for`) is authorized with an account of that person, any other with one for
the organization."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.ids import ApiKeyId, IdentityProviderId
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """`url` is for a person's browser, once, until `expires_at`."""

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationAnswer:
    """The raw parameters of the redirect (RFC 6749, section 4.1.2; RFC 9207). `browser` is the
    value that the browser got when it began, if it got one."""

    state: str = field(repr=False)
    code: str | None = field(default=None, repr=False)
    error: str | None = None
    issuer: str | None = None
    browser: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizedServer:
    """The authorized server, the key that began the authorization, and the issuer. `had_grant`:
    connections may have been opened with another account."""

    server: McpServer
    key_id: ApiKeyId
    issuer: str
    had_grant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account with which Dragoman may act at a server. `scope` is what was granted, if the
    authorization server said so; `renewed_at` is when it last issued a token. Of a sign-in, the
    issuer is the identity provider. Without an issuer, the account consists of secrets that the
    person gave then."""

    issuer: str | None
    scope: str | None
    renewed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSignIn:
    """Tokens of a person's sign-in with an identity provider, each with its end."""

    provider_id: IdentityProviderId
    issuer: str
    id_token: str = field(repr=False)
    id_token_expires_at: datetime
    access_token: str | None = field(default=None, repr=False)
    access_token_expires_at: datetime | None = None


class McpAuthorizer(Protocol):
    async def begin(self, server: McpServer, key_id: ApiKeyId, *, browser: str | None = None) -> AuthorizationRequest:
        """The URL for the person. With `browser`, only an answer with this value is accepted.
        Raises UNAVAILABLE `mcp_authorization_unavailable` with the reason, CONFLICT
        `not_listening`."""
        ...

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """Store the tokens. Raises INVALID `authorization_unknown`, `authorization_elsewhere`,
        `authorization_mixed_up`, `authorization_refused`, `authorization_outdated`, UNAVAILABLE
        `mcp_authorization_unavailable`."""
        ...

    async def signed_in(self, server: McpServer, sign_in: PersonSignIn) -> bool:
        """Store the sign-in of the person that the server acts for, from which tokens on their
        behalf come. False if it has not the token that the server needs, or the person has no
        access."""
        ...

    async def account(self, server: McpServer) -> Account | None:
        """The account that the server is used with; None if a person must authorize it."""
        ...

    async def disconnect(self, server: McpServer) -> bool:
        """Delete the grants of that account. False if there are none."""
        ...
