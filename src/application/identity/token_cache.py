"""Keys of tokens lately seen, so that a request need not read the key's row; revocation empties it at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from application.system.lru import LruCache
from domain.identity.api_key import ApiKey, Principal
from domain.ids import ApiKeyId, OrganizationId
from domain.rate_limit import RateLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """What each request with a key has to know of it."""

    principal: Principal
    expires_at: datetime | None
    rate_limit: RateLimit | None


def known_key(key: ApiKey) -> KnownKey:
    """What to remember of a key."""
    principal = Principal(organization_id=key.organization_id, key_id=key.id, role=key.role, platform=key.platform)
    return KnownKey(principal=principal, expires_at=key.expires_at, rate_limit=key.rate_limit)


class TokenCache:
    """At most `capacity` keys by token hash, least recently used out first; capacity 0 remembers nothing.

    A look-up that was under way while any key was revoked is not remembered: `put` takes the `generation` read before
    the look-up. `on_forget` is called once a key that was revoked here is not known any more. Where several processes serve one database, each calls `forget_organization` when it hears that keys were
    changed, and `fresh` says whether it would have heard by now: nothing is known while it would not.
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
        """The remembered key."""
        return self._keys.get(token_hash) if self._fresh() else None

    def of_key(self, key_id: ApiKeyId) -> KnownKey | None:
        """The remembered key of that id."""
        token_hash = self._hashes.get(key_id)
        return None if token_hash is None or not self._fresh() else self._keys.get(token_hash)

    def put(self, token_hash: str, key: KnownKey, *, generation: int) -> None:
        """Remember, unless a key was revoked since `generation`."""
        if generation != self.generation:
            return
        self._hashes[key.principal.key_id] = token_hash
        self._keys.put(token_hash, key)

    def forget(self, key_id: ApiKeyId) -> None:
        """The key was revoked: it is no longer known, nor is anything that is being looked up now."""
        self.generation += 1
        token_hash = self._hashes.pop(key_id, None)
        if token_hash is not None:
            self._keys.pop(token_hash)
        self._on_forget()

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Keys of the organization were changed, None: perhaps of any. None of them is known any more, nor what is being
        looked up now."""
        self.generation += 1
        for token_hash, key in self._keys.items():
            if organization_id is None or key.principal.organization_id == organization_id:
                self._keys.pop(token_hash)
                self._hashes.pop(key.principal.key_id, None)
