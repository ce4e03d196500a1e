"""Cache of recently used keys by token hash, so that most requests read no key row. Revocation
invalidates it at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from application.system.lru import LruCache
from domain.identity.api_key import ApiKey, Principal
from domain.identity.permission import Permission
from domain.ids import ApiKeyId, OrganizationId
from domain.rate_limit import RateLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """The data of a key, or of a person's token, that every request needs. `audiences` are those of
    the token."""

    principal: Principal
    expires_at: datetime | None
    rate_limit: RateLimit | None
    audiences: tuple[str, ...] = ()


def known_key(key: ApiKey, granted: frozenset[Permission] = frozenset()) -> KnownKey:
    principal = Principal(
        organization_id=key.organization_id,
        key_id=key.id,
        role=key.role,
        platform=key.platform,
        key_of=key.person_id,
        custom_role=key.custom_role,
        granted=granted,
    )
    return KnownKey(principal=principal, expires_at=key.expires_at, rate_limit=key.rate_limit)


class TokenCache:
    """At most `capacity` keys and tokens of users by token hash, least recently used evicted first;
    capacity 0 disables the cache.

    - A look-up that overlaps with a revocation is not cached: `put` takes the `generation` that was
      read before the look-up.
    - `on_forget` is called after what was revoked here has left the cache.
    - Where several processes share a database, each calls `forget_organization` when it is notified
      of changed keys. `fresh` says whether notifications arrive; without them the cache returns
      nothing.
    """

    def __init__(
        self, capacity: int, *, fresh: Callable[[], bool] = lambda: True, on_forget: Callable[[], None] = lambda: None
    ) -> None:
        self._fresh = fresh
        self._on_forget = on_forget
        self._hashes: dict[ApiKeyId, str] = {}
        self._keys: LruCache[str, KnownKey] = LruCache(
            capacity, on_drop=lambda key: self._hashes.pop(key.principal.key_id, None)
        )
        self.generation = 0

    def get(self, token_hash: str) -> KnownKey | None:
        return self._keys.get(token_hash) if self._fresh() else None

    def of_key(self, key_id: ApiKeyId) -> KnownKey | None:
        """The cached key with that id."""
        token_hash = self._hashes.get(key_id)
        return None if token_hash is None or not self._fresh() else self._keys.get(token_hash)

    def put(self, token_hash: str, key: KnownKey, *, generation: int) -> None:
        """Cache the key, unless a key was revoked since `generation`."""
        if generation != self.generation:
            return
        self._hashes[key.principal.key_id] = token_hash
        self._keys.put(token_hash, key)

    def forget(self, key_id: ApiKeyId) -> None:
        """Drop a revoked key, or all tokens of a user, and invalidate look-ups in progress."""
        self.generation += 1
        self._hashes.pop(key_id, None)
        for token_hash, key in self._keys.items():
            if key.principal.key_id == key_id:
                self._keys.pop(token_hash)
        self._on_forget()

    def forget_all(self) -> None:
        """Drop all keys and tokens, after a change here that concerns users of any organization."""
        self.forget_organization(None)
        self._on_forget()

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Drop the keys of an organization (None: of all), and invalidate look-ups in progress."""
        self.generation += 1
        for token_hash, key in self._keys.items():
            if organization_id is None or key.principal.organization_id == organization_id:
                self._keys.pop(token_hash)
                self._hashes.pop(key.principal.key_id, None)
