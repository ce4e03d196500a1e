"""OpenID Connect, imported at its first use: PyJWT and what it verifies with take megabytes."""

from application.identity.ports import TokenVerifier, VerifiedToken
from application.system.lazy import Lazy
from application.system.ports import Clock
from application.workflows.http_request import HttpCaller
from domain.identity.identity_provider import IdentityProvider
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
