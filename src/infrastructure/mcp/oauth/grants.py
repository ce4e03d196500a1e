"""Grants of authorization servers, pending authorizations, and the port of their store."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from domain.ids import ApiKeyId, IdentityProviderId, McpServerId, OrganizationId, UserId
from domain.mcp.auth import (
    AuthorizationCodeAuth,
    ClientCredentialsAuth,
    IdJagAuth,
    OAuthSettings,
    SubjectToken,
    TokenExchangeAuth,
)
from domain.mcp.server import McpServer, McpServerConfig

CLAIM_LASTS = timedelta(seconds=30)
"""Longer than one request, but not than several slow ones: a process whose claim has expired stores
nothing if another one has claimed meanwhile. After a crash, other processes wait this long for the
claim."""
_AHEAD = timedelta(seconds=60)
_AHEAD_SHARE = 0.2


class GrantOwner(NamedTuple):
    """Whose grants for which server: the organization's, or those of one person in it."""

    organization_id: OrganizationId
    server_id: McpServerId
    person_id: UserId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """Dragoman's client at an authorization server. `secret` is set for dynamic registrations only:
    a configured one stays in the server's configuration. `auth_method` as in RFC 7591, section 2.
    `algorithms` are those of assertions that the authorization server takes; None if it does not
    say so.
    """

    client_id: str
    auth_method: str
    secret: str | None = field(default=None, repr=False)
    redirect_uri: str | None = None
    algorithms: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A token of a person's sign-in, which their identity provider exchanges until `expires_at`. It
    is sent nowhere else."""

    provider_id: IdentityProviderId
    token: str = field(repr=False)
    kind: SubjectToken
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Tokens for one MCP server. Without an access token and a subject, authorization must be
    requested again. `binding` is the configuration for which the tokens are valid; they are sent
    nowhere else."""

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
    subject: Subject | None = None

    @property
    def tokens(self) -> tuple[str | None, str | None, str | None]:
        """The part that a renewal changes."""
        return self.access_token, self.refresh_token, None if self.subject is None else self.subject.token

    def has_subject(self, now: datetime) -> bool:
        """Whether a token of the person's sign-in can be exchanged."""
        return self.subject is not None and now < self.subject.expires_at

    def is_expired(self, now: datetime) -> bool:
        """Whether the access token has expired."""
        return self.expires_at is not None and now >= self.expires_at

    def is_due(self, now: datetime) -> bool:
        """Whether to renew now: a minute before expiry, or after four fifths of a shorter
        lifetime."""
        if self.expires_at is None:
            return False
        ahead = min(_AHEAD, (self.expires_at - self.obtained_at) * _AHEAD_SHARE)
        return now >= self.expires_at - ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """A person was redirected to an authorization server; the answer is accepted once, until
    `expires_at`.

    - `person_id` is the person whose grant it becomes; None for one of the organization.
    - `browser_hash`: only the browser that holds this value may bring the answer.
    """

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
    person_id: UserId | None = None
    browser_hash: str | None = None


class OAuthStore(Protocol):
    """Stores grants and pending authorizations, both encrypted at rest. A person who is not active
    has no grants: nothing is read, stored or claimed for them."""

    async def load(self, owner: GrantOwner) -> tuple[Grant, ...]:
        """The owner's grants, one per issuer, newest first."""
        ...

    async def save(self, owner: GrantOwner, grant: Grant) -> bool:
        """Store the grant in place of that of the same issuer, whose claim ends. False if the
        server is not stored (a test), or if the person is not active."""
        ...

    async def replace(self, owner: GrantOwner, grant: Grant, claim: str) -> bool:
        """Replace the grant of the same issuer that is claimed so; the claim stays. False if there
        is none: it was deleted, or a consent replaced it."""
        ...

    async def claim(self, owner: GrantOwner, issuer: str, claim: str, *, now: datetime) -> Grant | None:
        """Claim the refresh token of the owner's grant of `issuer`, for CLAIM_LASTS or until
        released. Returns the stored grant; None if it is claimed or missing."""
        ...

    async def release(self, owner: GrantOwner, claim: str) -> None: ...

    async def remove(self, owner: GrantOwner) -> bool:
        """Delete the owner's grants. False if there are none."""
        ...

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        """Store a pending authorization, and drop those expired before `now`."""
        ...

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        """Remove and return the pending authorization of this state."""
        ...


_KINDS = {
    AuthorizationCodeAuth: "code",
    ClientCredentialsAuth: "credentials",
    TokenExchangeAuth: "exchange",
    IdJagAuth: "id-jag",
}


def grant_owner(server: McpServer) -> GrantOwner:
    """The owner of the grants that the server uses; the test of a saved server uses its grants."""
    return GrantOwner(server.organization_id, server.tested_id or server.id, server.person_id)


def oauth_settings(config: McpServerConfig) -> OAuthSettings:
    """The server's `auth`, which must be OAuth."""
    auth = config.auth
    assert isinstance(auth, OAuthSettings)
    return auth


def binding_of(config: McpServerConfig) -> str:
    """A digest of the configuration that tokens are bound to: address, kind, client, scopes,
    issuer."""
    auth = oauth_settings(config)
    parts = [config.url, _KINDS[type(auth)], auth.client_id, sorted(auth.scopes), auth.issuer]
    if isinstance(auth, TokenExchangeAuth):
        parts += [auth.audience, auth.resource, auth.subject_token.value]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
