"""AuthenticateDirectory: the identity provider behind a SCIM token."""

from application.identity.authenticate_person import invalid_token
from application.identity.key_limits import KeyLimits
from application.identity.ports import IdentityProviderDirectory
from application.provisioning.ports import ScimTokens
from domain.identity.api_key import hash_token
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import SCIM_PREFIX
from domain.ids import ApiKeyId


class AuthenticateDirectory:
    """Rules:
    - Unknown, revoked and replaced tokens get the same error, and so do API keys and tokens of
      people.
    - The service's rate limit applies to each identity provider.

    Raises: ServiceError token_invalid (UNAUTHENTICATED), rate_limited (LIMIT).
    """

    def __init__(
        self, *, scim_tokens: ScimTokens, identity_providers: IdentityProviderDirectory, limits: KeyLimits
    ) -> None:
        self._tokens = scim_tokens
        self._providers = identity_providers
        self._limits = limits

    async def execute(self, token: str) -> IdentityProvider:
        provider_id = await self._tokens.provider_of(hash_token(token)) if token.startswith(SCIM_PREFIX) else None
        provider = None if provider_id is None else await self._providers.named(provider_id)
        if provider is None:
            raise invalid_token()
        if (counted := self._limits.take(ApiKeyId(provider.id), None)) is not None:
            await counted
        return provider
