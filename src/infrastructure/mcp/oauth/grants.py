"""What an authorization server has granted for one MCP server, what is asked of a person right now, and their store."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from domain.ids import ApiKeyId, McpServerId, OrganizationId
from domain.mcp.auth import AuthorizationCodeAuth, ClientCredentialsAuth, OAuthSettings
from domain.mcp.server import McpServer, McpServerConfig

CLAIM_LASTS = timedelta(seconds=30)
"""Longer than a request to a token endpoint may take; what a process that dies with a claim costs the others."""
_AHEAD = timedelta(seconds=60)
_AHEAD_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """As what Dragoman is known to an authorization server. `secret` is there only for a client that was registered by
    ourselves: a given one stays in the server's configuration. `auth_method` is one of RFC 7591, section 2."""

    client_id: str
    auth_method: str
    secret: str | None = field(default=None, repr=False)
    redirect_uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Tokens for one MCP server. Without an access token, authorization is to be asked for anew. `binding` says for which
    configuration they are: tokens never go anywhere else."""

    binding: str
    issuer: str
    resource: str
    token_endpoint: str
    client: OAuthClient
    scope: str | None
    obtained_at: datetime
    expires_at: datetime | None
    access_token: str | None = field(repr=False)
    refresh_token: str | None = field(repr=False)

    @property
    def tokens(self) -> tuple[str | None, str | None]:
        """What is different after a renewal: the access token and the refresh token."""
        return self.access_token, self.refresh_token

    def is_expired(self, now: datetime) -> bool:
        """Whether the server will not take the access token any more."""
        return self.expires_at is not None and now >= self.expires_at

    def is_due(self, now: datetime) -> bool:
        """Whether it is time to renew it: a minute ahead of its end, or a fifth of a shorter life."""
        if self.expires_at is None:
            return False
        ahead = min(_AHEAD, (self.expires_at - self.obtained_at) * _AHEAD_SHARE)
        return now >= self.expires_at - ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """A person was sent to an authorization server and is expected back, once, until `expires_at`."""

    organization_id: OrganizationId
    server_id: McpServerId
    key_id: ApiKeyId
    expires_at: datetime
    binding: str
    issuer: str
    issuer_in_answer: bool
    resource: str
    scope: str | None
    token_endpoint: str
    client: OAuthClient
    redirect_uri: str
    verifier: str = field(repr=False)


class OAuthStore(Protocol):
    """Grants and pending authorizations; both are encrypted at rest."""

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> tuple[Grant, ...]:
        """The server's grants, one for each issuer, newest first."""
        ...

    async def save(self, organization_id: OrganizationId, server_id: McpServerId, grant: Grant) -> None:
        """Store, in place of the one of the same issuer. Of a server that is not stored (a test), nothing is."""
        ...

    async def claim(
        self, organization_id: OrganizationId, server_id: McpServerId, issuer: str, claim: str, *, now: datetime
    ) -> Grant | None:
        """Take the sole right to use the refresh token of the server's grant of `issuer`, for CLAIM_LASTS or until it is
        given back. The grant as it is stored then; None if somebody else has the right, or there is no such grant."""
        ...

    async def give_back(self, organization_id: OrganizationId, server_id: McpServerId, claim: str) -> None:
        """The refresh token is not being used any more."""
        ...

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        """Store what is asked for, and drop what expired before `now`."""
        ...

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        """What was asked for with this state; nobody gets it a second time."""
        ...


def grant_owner(server: McpServer) -> McpServerId:
    """The server whose grants are used: a test of a saved server uses its."""
    return server.tested_id or server.id


def oauth_settings(config: McpServerConfig) -> OAuthSettings:
    """The server's `auth`, which is known to be OAuth."""
    auth = config.auth
    assert isinstance(auth, ClientCredentialsAuth | AuthorizationCodeAuth)
    return auth


def binding_of(config: McpServerConfig) -> str:
    """A digest of what tokens are bound to: the address, as whom, for what, from where."""
    auth = oauth_settings(config)
    kind = "code" if isinstance(auth, AuthorizationCodeAuth) else "credentials"
    parts = [config.url, kind, auth.client_id, sorted(auth.scopes), auth.issuer]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
