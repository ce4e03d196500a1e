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

    async def get(self, organization_id: OrganizationId) -> Organization | None: ...

    async def add(self, organization: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store an organization with its first key."""

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store another key of an existing organization."""

    async def page(self, request: PageRequest) -> Page[Organization]:
        """All organizations, newest first."""

    async def first(self) -> Organization | None:
        """The organization of the first start; None before it."""

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:
        """Store a change. Raises NOT_FOUND, PRECONDITION `version_conflict`."""


class IdentityStore(Protocol):
    """Organizations and their API keys."""

    async def bootstrap(self, organization: Organization, key: ApiKey) -> bool:
        """Store the first organization with its key, unless an organization exists. True if it was
        stored."""

    async def add_key(self, key: ApiKey, audit: AuditEvent) -> None: ...

    async def revoke_key(self, organization_id: OrganizationId, key_id: ApiKeyId, audit: AuditEvent) -> bool:
        """Revoke at `audit.at`. False if no such key exists that is not revoked yet."""

    async def record_uses(self, uses: Mapping[ApiKeyId, datetime]) -> None:
        """Store times of use, unless a later one is stored. Deleted keys are skipped."""

    async def key(self, organization_id: OrganizationId, key_id: ApiKeyId) -> ApiKey | None:
        """The key, also if revoked, or None."""

    async def key_by_hash(self, token_hash: str) -> ApiKey | None:
        """The key of the token with this hash, also if revoked."""

    async def keys(self, organization_id: OrganizationId, request: PageRequest) -> Page[ApiKey]:
        """Keys, newest first."""


class FirstKey(Protocol):
    """Stores the token of the first start for the person who starts the service. Each method raises
    UNAVAILABLE if the place cannot be written."""

    def draft(self, fresh: str) -> str:
        """The token for the first key: a draft that was neither published nor discarded, otherwise
        `fresh`, which becomes the draft. A draft survives the process."""

    def keep(self) -> None:
        """The draft is the token of a stored key: publish it."""

    def discard(self) -> None:
        """The draft belongs to no key: remove it."""
