"""Principals of tokens lately seen, so that a request need not read the key's row; revocation empties it at once."""

from collections import OrderedDict

from domain.identity.api_key import Principal
from domain.ids import ApiKeyId


class TokenCache:
    """At most `capacity` principals by token hash, least recently used out first; capacity 0 remembers nothing.

    A look-up that was under way while any key was revoked is not remembered: `put` takes the `generation` read before
    the look-up. The cache knows of revocations in its own process only; where several processes serve one database,
    give it capacity 0 or have every process call `forget` when told of a revocation.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._principals: OrderedDict[str, Principal] = OrderedDict()
        self.generation = 0

    def get(self, token_hash: str) -> Principal | None:
        """The remembered principal."""
        principal = self._principals.get(token_hash)
        if principal is not None:
            self._principals.move_to_end(token_hash)
        return principal

    def put(self, token_hash: str, principal: Principal, *, generation: int) -> None:
        """Remember, unless a key was revoked since `generation`."""
        if self._capacity == 0 or generation != self.generation:
            return
        self._principals[token_hash] = principal
        if len(self._principals) > self._capacity:
            self._principals.popitem(last=False)

    def forget(self, key_id: ApiKeyId) -> None:
        """The key was revoked: it is no longer known, nor is anything that is being looked up now."""
        self.generation += 1
        for token_hash in [seen for seen, principal in self._principals.items() if principal.key_id == key_id]:
            del self._principals[token_hash]
