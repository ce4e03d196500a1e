"""OAuth grants and pending authorizations in memory."""

from datetime import datetime

from domain.identity.user import UserStatus
from infrastructure.mcp.oauth.grants import CLAIM_LASTS, Grant, GrantOwner, PendingAuthorization
from tests.doubles.state import InMemoryState


class InMemoryOAuthStore:
    """The `OAuthStore` of the token broker, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self.grants: dict[tuple[GrantOwner, str], Grant] = {}
        self._claims: dict[tuple[GrantOwner, str], tuple[str, datetime]] = {}

    async def load(self, owner: GrantOwner) -> tuple[Grant, ...]:
        """The owner's grants, newest first."""
        if not self._is_active(owner):
            return ()
        found = [grant for key, grant in self.grants.items() if key[0] == owner]
        return tuple(sorted(found, key=lambda grant: grant.obtained_at, reverse=True))

    async def save(self, owner: GrantOwner, grant: Grant) -> bool:
        """Store, in place of the one of the same issuer."""
        server = self._state.servers.get(owner.server_id)
        if server is None or server.organization_id != owner.organization_id or not self._is_active(owner):
            return False
        self.grants[owner, grant.issuer] = grant
        self._claims.pop((owner, grant.issuer), None)
        return True

    async def replace(self, owner: GrantOwner, grant: Grant, claim: str) -> bool:
        """Store, in place of the claimed one."""
        key = (owner, grant.issuer)
        held = self._claims.get(key)
        if key not in self.grants or held is None or held[0] != claim or not self._is_active(owner):
            return False
        self.grants[key] = grant
        return True

    async def claim(self, owner: GrantOwner, issuer: str, claim: str, *, now: datetime) -> Grant | None:
        """Take the sole right to use the refresh token."""
        key = (owner, issuer)
        grant, held = self.grants.get(key), self._claims.get(key)
        if grant is None or not self._is_active(owner) or (held is not None and held[1] > now):
            return None
        self._claims[key] = (claim, now + CLAIM_LASTS)
        return grant

    async def release(self, owner: GrantOwner, claim: str) -> None:
        """The refresh token is not being used any more."""
        self._claims = {key: held for key, held in self._claims.items() if held[0] != claim}

    async def remove(self, owner: GrantOwner) -> bool:
        """Delete the owner's grants."""
        gone = [key for key in self.grants if key[0] == owner]
        for key in gone:
            del self.grants[key]
            self._claims.pop(key, None)
        return bool(gone)

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        """Store what is asked for, and drop what has expired."""
        waiting = self._state.authorizations
        self._state.authorizations = {key: one for key, one in waiting.items() if one.expires_at >= now}
        self._state.authorizations[state_hash] = pending

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        """What was asked for with this state, once."""
        return self._state.authorizations.pop(state_hash, None)

    def _is_active(self, owner: GrantOwner) -> bool:
        if owner.person_id is None:
            return True
        user = self._state.users.get(owner.person_id)
        return user is not None and user.status is UserStatus.ACTIVE
