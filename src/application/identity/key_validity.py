"""Checks whether a key is still valid during long streams and waits."""

from application.identity.ports import IdentityStore
from application.identity.token_cache import TokenCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal


class KeyValidity:
    """Checks the token cache first, then the stored key."""

    def __init__(self, *, identities: IdentityStore, cache: TokenCache, clock: Clock) -> None:
        self._identities = identities
        self._cache = cache
        self._clock = clock

    async def require(self, principal: Principal) -> None:
        """Raises UNAUTHENTICATED `token_invalid` if the key is revoked or expired."""
        known = self._cache.of_key(principal.key_id)
        if known is not None:
            expires_at, revoked = known.expires_at, False
        else:
            key = await self._identities.key(principal.organization_id, principal.key_id)
            expires_at, revoked = (None, True) if key is None else (key.expires_at, key.revoked_at is not None)
        if revoked or (expires_at is not None and expires_at <= self._clock.now()):
            raise ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The API key has expired or was revoked.")
