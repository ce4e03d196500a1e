"""Port of the authorization of MCP servers by a person in a browser."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.ids import ApiKeyId
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """`url` is for a person's browser, once, until `expires_at`."""

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationAnswer:
    """The raw parameters of the redirect (RFC 6749, section 4.1.2; RFC 9207)."""

    state: str = field(repr=False)
    code: str | None = field(default=None, repr=False)
    error: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizedServer:
    """The authorized server, the key that began the authorization, and the issuer."""

    server: McpServer
    key_id: ApiKeyId
    issuer: str


class McpAuthorizer(Protocol):
    async def begin(self, server: McpServer, key_id: ApiKeyId) -> AuthorizationRequest:
        """The URL for the person. Raises UNAVAILABLE `mcp_authorization_unavailable` with the
        reason, CONFLICT `not_listening`."""
        ...

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """Store the tokens. Raises INVALID `authorization_unknown`, `authorization_mixed_up`,
        `authorization_refused`, `authorization_outdated`, UNAVAILABLE
        `mcp_authorization_unavailable`."""
        ...
