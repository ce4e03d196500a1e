"""Port of the authorization of MCP servers by a person: sent to an authorization server, and expected back."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.ids import ApiKeyId
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """`url` is for a person's browser, until `expires_at`, once."""

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationAnswer:
    """What the browser brings back (RFC 6749, section 4.1.2; RFC 9207), as it came."""

    state: str = field(repr=False)
    code: str | None = field(default=None, repr=False)
    error: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizedServer:
    """The server that is authorized now, the key that had asked for it, and by whom it was granted."""

    server: McpServer
    key_id: ApiKeyId
    issuer: str


class McpAuthorizer(Protocol):
    """Asks for authorization and keeps what is granted."""

    async def begin(self, server: McpServer, key_id: ApiKeyId) -> AuthorizationRequest:
        """Where to send a person. Raises UNAVAILABLE `mcp_authorization_unavailable` with what is missing or wrong,
        CONFLICT `not_listening`."""
        ...

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """Take the answer; the tokens are stored. Raises INVALID `authorization_unknown`, `authorization_mixed_up`,
        `authorization_refused`, `authorization_outdated`, UNAVAILABLE `mcp_authorization_unavailable`."""
        ...
