"""Ports of the identity slice."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import ApiKeyId, OrganizationId


class OrganizationStore(Protocol):
    """Organizations and their settings."""

    async def get(self, organization_id: OrganizationId) -> Organization | None:
        """The organization, or None."""
        ...

    async def add(self, organization: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store an organization with its first key."""
        ...

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store a further key of an organization there is."""
        ...

    async def page(self, request: PageRequest) -> Page[Organization]:
        """All organizations, newest first."""
        ...

    async def first(self) -> Organization | None:
        """The one of the first start, or None before it."""
        ...

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:
        """Store a change. Raises NOT_FOUND, PRECONDITION `version_conflict`."""
        ...


class IdentityStore(Protocol):
    """Organizations and their API keys."""

    async def bootstrap(self, organization: Organization, key: ApiKey) -> bool:
        """Store the first organization with its key, unless any organization exists. True if it was stored."""
        ...

    async def add_key(self, key: ApiKey, audit: AuditEvent) -> None:
        """Store a key."""
        ...

    async def revoke_key(self, organization_id: OrganizationId, key_id: ApiKeyId, audit: AuditEvent) -> bool:
        """Revoke at `audit.at`. False if there is no such key that is not revoked yet."""
        ...

    async def record_uses(self, uses: Mapping[ApiKeyId, datetime]) -> None:
        """Store when keys were used, unless a later use is stored already. A key that is gone is left out."""
        ...

    async def key(self, organization_id: OrganizationId, key_id: ApiKeyId) -> ApiKey | None:
        """The key, revoked or not, or None."""
        ...

    async def key_by_hash(self, token_hash: str) -> ApiKey | None:
        """The key of that token, revoked or not."""
        ...

    async def keys(self, organization_id: OrganizationId, request: PageRequest) -> Page[ApiKey]:
        """Keys, newest first."""
        ...


class FirstKey(Protocol):
    """Where the token of the first start is kept for the person who starts the service. Each raises UNAVAILABLE when that
    place cannot be written."""

    def draft(self, fresh: str) -> str:
        """The token to make the first key with: one that was drafted and never kept or discarded, else `fresh`, which is
        drafted now. A draft survives the process."""
        ...

    def keep(self) -> None:
        """The draft is a key: put it where it is looked for."""
        ...

    def discard(self) -> None:
        """The draft is no key."""
        ...
