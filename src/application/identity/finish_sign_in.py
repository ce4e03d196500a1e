"""FinishSignIn: the user of a browser that an identity provider sent back."""

import hmac
from dataclasses import dataclass, field

from application.identity.admit_person import AdmitPerson, AdmitPersonCommand, refused
from application.identity.begin_sign_in import PendingSignIn
from application.identity.ports import (
    FinishedSignIn,
    IdentityProviderClient,
    IdentityProviderDirectory,
    SignInListener,
    TokenVerifier,
)
from application.system.ports import Clock
from domain.identity.user import User


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishSignInCommand:
    """`pending` is what the same browser began, None if it began nothing; the others are parameters
    of the redirect."""

    pending: PendingSignIn | None
    state: str
    code: str | None = field(repr=False)
    error: str | None = None
    issuer: str | None = None


class FinishSignIn:
    """Rules:
    - The browser that comes back is the one that was sent, within ten minutes: its state matches.
    - An answer that names another issuer is refused (RFC 9207), and so is one that names none where
      the identity provider promises to.
    - The ID token is for this service, and has the nonce of this sign-in.
    - Who is admitted is decided by `AdmitPerson`. Tokens of others go nowhere.

    Raises: ServiceError sign_in_refused, token_invalid (UNAUTHENTICATED),
    identity_provider_unavailable.
    """

    def __init__(
        self,
        *,
        identity_providers: IdentityProviderDirectory,
        client: IdentityProviderClient,
        tokens: TokenVerifier,
        admit_person: AdmitPerson,
        listener: SignInListener,
        clock: Clock,
    ) -> None:
        self._providers = identity_providers
        self._client = client
        self._tokens = tokens
        self._admit = admit_person
        self._listener = listener
        self._clock = clock

    async def execute(self, command: FinishSignInCommand) -> User:
        pending = command.pending
        if pending is None or pending.expires_at <= self._clock.now():
            raise refused("This sign-in is unknown or too old. Begin it again.")
        if not hmac.compare_digest(pending.state.encode(), command.state.encode("utf-8", "replace")):
            raise refused("This sign-in was begun by another page. Begin it again.")
        provider = await self._providers.named(pending.provider_id)
        if provider is None:
            raise refused("The identity provider was deleted.")
        metadata = await self._client.metadata(provider)
        if command.issuer != provider.issuer and (command.issuer is not None or metadata.names_itself_in_answers):
            raise refused("The answer comes from another identity provider than was asked.")
        if command.error is not None or not command.code:
            raise refused("The identity provider did not sign you in.")
        tokens = await self._client.redeem(
            provider, command.code, redirect_uri=pending.redirect_uri, verifier=pending.verifier
        )
        verified = await self._tokens.verify(provider, tokens.id_token, nonce=pending.nonce)
        admitted = AdmitPersonCommand(provider=provider, claims=verified.claims, signs_in=True)
        user = await self._admit.execute(admitted)
        finished = FinishedSignIn(user=user, provider=provider, tokens=tokens, id_token_expires_at=verified.expires_at)
        await self._listener.signed_in(finished)
        return user
