"""Organizations and API keys in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import ApiKeyId, OrganizationId, UserId
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryIdentityStore:
    """The `IdentityStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def bootstrap(self, organization: Organization, key: ApiKey) -> bool:
        """Store the first organization with its key."""
        if self._state.organizations:
            return False
        self._state.organizations[organization.id] = organization
        self._state.keys[key.id] = key
        return True

    async def add_key(self, key: ApiKey, audit: AuditEvent) -> None:
        """Store a key."""
        self._state.keys[key.id] = key
        self._state.record(audit)

    async def revoke_key(self, organization_id: OrganizationId, key_id: ApiKeyId, audit: AuditEvent) -> bool:
        """Revoke at `audit.at`."""
        key = self._state.keys.get(key_id)
        if key is None or key.organization_id != organization_id or key.revoked_at is not None:
            return False
        self._state.keys[key_id] = replace(key, revoked_at=audit.at)
        self._state.record(audit)
        return True

    async def record_uses(self, uses: Mapping[ApiKeyId, datetime]) -> None:
        """Store when keys were used."""
        for key_id, at in uses.items():
            key = self._state.keys.get(key_id)
            if key is not None and (key.last_used_at is None or key.last_used_at < at):
                self._state.keys[key_id] = replace(key, last_used_at=at)

    async def key(self, organization_id: OrganizationId, key_id: ApiKeyId) -> ApiKey | None:
        """The key, revoked or not, or None."""
        key = self._state.keys.get(key_id)
        return key if key is not None and key.organization_id == organization_id else None

    async def creators(
        self, organization_id: OrganizationId, key_ids: Collection[ApiKeyId]
    ) -> Mapping[ApiKeyId, UserId]:
        """The users who created these keys."""
        keys = [await self.key(organization_id, key_id) for key_id in key_ids]
        return {key.id: key.person_id for key in keys if key is not None and key.person_id is not None}

    async def key_by_hash(self, token_hash: str) -> ApiKey | None:
        """The key of that token, revoked or not."""
        return next((key for key in self._state.keys.values() if key.token_hash == token_hash), None)

    async def keys(self, organization_id: OrganizationId, request: PageRequest) -> Page[ApiKey]:
        """Keys, newest first."""
        keys = (key for key in self._state.keys.values() if key.organization_id == organization_id)
        return newest_first(keys, lambda key: by_time(key.created_at, key.id), request)
