"""People whom directories manage, in memory."""

from dataclasses import replace
from datetime import datetime

from application.provisioning.ports import ProvisionedChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import ProvisionedUser
from domain.identity.user import User
from domain.ids import IdentityProviderId, UserId
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState


class InMemoryProvisioningStore:
    """The ports `ScimTokens`, `ProvisionedUserStore` and `ProvisionedAccess` over shared in-memory
    tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self._users = InMemoryUserStore(state)

    async def set_token(self, provider: IdentityProvider, token_hash: str, at: datetime, audit: AuditEvent) -> None:
        """Store a token."""
        self._state.scim_tokens[provider.id] = token_hash
        self._state.record(audit)

    async def revoke_token(self, provider: IdentityProvider, audit: AuditEvent) -> bool:
        """Remove the token."""
        if self._state.scim_tokens.pop(provider.id, None) is None:
            return False
        self._state.record(audit)
        return True

    async def provider_of(self, token_hash: str) -> IdentityProviderId | None:
        """By hash."""
        return next((id for id, stored in self._state.scim_tokens.items() if stored == token_hash), None)

    async def add(self, new: ProvisionedUser, audit: AuditEvent) -> ProvisionedUser:
        """Store a person."""
        user = new.user
        found = await self._users.find(user.organization_id, user.issuer, user.subject) or user
        if found.id in self._state.provisioned or self._has(new, found.id):
            raise conflict("user_name_taken", "There is one of this name.")
        stored = new.of(found)
        self._put(stored)
        self._state.record(audit)
        return stored

    async def get(self, provider: IdentityProvider, user_id: UserId) -> ProvisionedUser | None:
        """By id, as the user is now."""
        found = self._state.provisioned.get(user_id)
        if found is None or found.provider_id != provider.id:
            return None
        return replace(found, user=self._state.users[user_id])

    async def named(self, provider: IdentityProvider, user_name: str) -> ProvisionedUser | None:
        """By user name."""
        wanted = user_name.casefold()
        return next((user for user in await self.all(provider) if user.entry.user_name.casefold() == wanted), None)

    async def all(self, provider: IdentityProvider) -> tuple[ProvisionedUser, ...]:
        """In the order of creation."""
        found = [await self.get(provider, user_id) for user_id in self._state.provisioned]
        users = [user for user in found if user is not None]
        return tuple(sorted(users, key=lambda user: (user.created_at, user.user.id)))

    async def change(self, provider: IdentityProvider, user_id: UserId, decide: ProvisionedChange) -> ProvisionedUser:
        """Store what `decide` says."""
        stored = existing(await self.get(provider, user_id), "user", user_id)
        decided = decide(stored)
        if decided is None:
            return stored
        changed, audit = decided
        user = changed.user
        other = await self._users.find(user.organization_id, user.issuer, user.subject)
        if self._has(changed, user_id) or (other is not None and other.id != user_id):
            raise conflict("user_name_taken", "There is one of this name.")
        self._put(changed)
        self._state.record(audit)
        return changed

    async def remove(self, provider: IdentityProvider, user_id: UserId) -> None:
        """Manage a person no more."""
        self._state.provisioned.pop(user_id, None)
        for group in [*self._state.groups.values()]:
            members = tuple(member for member in group.members if member != user_id)
            self._state.groups[group.id] = replace(group, members=members)

    async def elsewhere(self, provider: IdentityProvider, issuer: str, subject: str) -> tuple[User, ...]:
        """In other organizations."""
        return tuple(
            user
            for user in self._state.users.values()
            if (user.provider_id, user.issuer, user.subject) == (provider.id, issuer, subject)
            and user.organization_id != provider.organization_id
        )

    def _has(self, new: ProvisionedUser, user_id: UserId) -> bool:
        wanted = (new.provider_id, new.entry.user_name.casefold())
        others = (user for id, user in self._state.provisioned.items() if id != user_id)
        return wanted in {(user.provider_id, user.entry.user_name.casefold()) for user in others}

    def _put(self, user: ProvisionedUser) -> None:
        self._state.users[user.user.id] = user.user
        self._state.provisioned[user.user.id] = user
