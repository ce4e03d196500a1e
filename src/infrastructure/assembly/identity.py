"""OpenID Connect, imported at its first use: PyJWT and what it verifies with take megabytes."""

from pathlib import Path

from application.a2a.ports import CardSigner
from application.identity.ports import TokenVerifier, VerifiedToken
from application.system.lazy import Lazy
from application.system.ports import Clock
from application.workflows.http_request import HttpCaller
from domain.identity.identity_provider import IdentityProvider
from domain.json_value import JsonObject
from infrastructure.identity.documents import IdentityProviderDocuments


class LazySignedTokens(Lazy[TokenVerifier]):
    """The `TokenVerifier` port."""

    async def issuer_of(self, token: str) -> str | None:
        return await (await self.warm()).issuer_of(token)

    async def verify(self, provider: IdentityProvider, token: str, *, nonce: str | None = None) -> VerifiedToken:
        return await (await self.warm()).verify(provider, token, nonce=nonce)


def documents(*, http: HttpCaller, clock: Clock) -> IdentityProviderDocuments:
    return IdentityProviderDocuments(http=http, clock=clock)


def signed_tokens(*, documents: IdentityProviderDocuments, clock: Clock) -> LazySignedTokens:
    def load() -> TokenVerifier:
        from infrastructure.identity.signed_tokens import SignedTokens

        return SignedTokens(documents=documents, clock=clock)

    return LazySignedTokens(load)


class UnsignedCards:
    """The `CardSigner` port without a key."""

    async def signed(self, card: JsonObject, keys_url: str) -> JsonObject:
        return card

    async def keys(self) -> JsonObject:
        return {"keys": []}


class LazyCardSigner(Lazy[CardSigner]):
    """The `CardSigner` port."""

    async def signed(self, card: JsonObject, keys_url: str) -> JsonObject:
        return await (await self.warm()).signed(card, keys_url)

    async def keys(self) -> JsonObject:
        return await (await self.warm()).keys()


def card_signer(key_file: Path | None) -> CardSigner:
    if key_file is None:
        return UnsignedCards()

    def load() -> CardSigner:
        from infrastructure.identity.card_signatures import CardSignatures

        return CardSignatures(key_file)

    return LazyCardSigner(load)
