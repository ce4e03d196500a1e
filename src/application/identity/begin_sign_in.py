"""BeginSignIn: send a browser to an identity provider (OpenID Connect, authorization code flow with
PKCE)."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from application.identity.ports import IdentityProviderClient, IdentityProviderDirectory
from application.system.ports import Clock
from domain.errors import existing
from domain.identity.identity_provider import IdentityProvider
from domain.ids import IdentityProviderId

LASTS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginSignInCommand:
    """`redirect_uri` is where the identity provider sends the browser back."""

    provider_id: IdentityProviderId
    redirect_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """A sign-in under way. Only the browser that began it may hold it, sealed."""

    provider_id: IdentityProviderId
    redirect_uri: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSignIn:
    url: str = field(repr=False)
    pending: PendingSignIn


class BeginSignIn:
    """Rules:
    - State, nonce and PKCE verifier are new for each sign-in, and valid for ten minutes.
    - The challenge method is S256, never plain.

    Raises: ServiceError identity_provider_not_found, identity_provider_unavailable.
    """

    def __init__(
        self, *, identity_providers: IdentityProviderDirectory, client: IdentityProviderClient, clock: Clock
    ) -> None:
        self._providers = identity_providers
        self._client = client
        self._clock = clock

    async def execute(self, command: BeginSignInCommand) -> BegunSignIn:
        found = await self._providers.named(command.provider_id)
        provider = existing(found, "identity provider", command.provider_id)
        metadata = await self._client.metadata(provider)
        pending = PendingSignIn(
            provider_id=provider.id,
            redirect_uri=command.redirect_uri,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(64),
            expires_at=self._clock.now() + LASTS,
        )
        return BegunSignIn(url=_url(metadata.authorization_endpoint, provider, pending), pending=pending)


def _url(endpoint: str, provider: IdentityProvider, pending: PendingSignIn) -> str:
    digest = hashlib.sha256(pending.verifier.encode()).digest()
    parts = urlsplit(endpoint)
    parameters = {
        **dict(parse_qsl(parts.query)),
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": pending.redirect_uri,
        "scope": " ".join(provider.scopes),
        "state": pending.state,
        "nonce": pending.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    return urlunsplit(parts._replace(query=urlencode(parameters), fragment=""))
