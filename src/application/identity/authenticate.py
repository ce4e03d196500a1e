"""Authenticate: from a bearer token to the principal it stands for."""

from dataclasses import dataclass, field

from application.identity.ports import IdentityStore
from application.identity.token_cache import TokenCache
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import TOKEN_PREFIX, Principal, hash_token


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticateCommand:
    """The token as the client sent it."""

    token: str = field(repr=False)


class Authenticate:
    """A known, unrevoked token stands for its key's organization and role.

    Unknown, malformed and revoked tokens are told apart by nobody: all are UNAUTHENTICATED `token_invalid`.
    A revoked key is refused from the moment its revocation is stored.
    """

    def __init__(self, *, identities: IdentityStore, cache: TokenCache) -> None:
        self._identities = identities
        self._cache = cache

    async def execute(self, command: AuthenticateCommand) -> Principal:
        """The principal. Raises UNAUTHENTICATED."""
        if not command.token.startswith(TOKEN_PREFIX):
            raise _unauthenticated()
        token_hash = hash_token(command.token)
        known = self._cache.get(token_hash)
        if known is not None:
            return known
        generation = self._cache.generation
        key = await self._identities.key_by_hash(token_hash)
        if key is None or key.revoked_at is not None:
            raise _unauthenticated()
        principal = Principal(organization_id=key.organization_id, key_id=key.id, role=key.role, platform=key.platform)
        self._cache.put(token_hash, principal, generation=generation)
        return principal


def _unauthenticated() -> ServiceError:
    return ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The API key is unknown or was revoked.")
