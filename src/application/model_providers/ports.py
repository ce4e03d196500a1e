"""Ports of the model providers slice."""

from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from domain.model_providers.provider import ModelProvider


class ModelProviderStore(Protocol):
    """Model providers of organizations; the adapter encrypts keys at rest."""

    async def add(self, provider: ModelProvider, audit: AuditEvent) -> None:
        """Store a new provider. Raises CONFLICT `model_provider_exists` if the name is in use in the organization,
        `too_many_model_providers` beyond MAX_PROVIDERS."""
        ...

    async def save(self, changed: ModelProvider, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change. Raises NOT_FOUND, PRECONDITION `version_conflict`."""
        ...

    async def all(self, organization_id: OrganizationId) -> tuple[ModelProvider, ...]:
        """The organization's providers by name, keys included, at most MAX_PROVIDERS."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[ModelProvider]:
        """Providers, newest first."""
        ...

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove the provider. False if there is none."""
        ...
