"""Ports of the model providers slice."""

from dataclasses import dataclass, field
from typing import Protocol

from application.models.ports import LanguageModel, ModelList
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from domain.model_providers.provider import ModelProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPlace:
    """One address and key of a provider: a deployment, or None for the provider itself. Another
    `identity` is another address or key."""

    deployment: str | None
    identity: object = field(repr=False)
    models: LanguageModel
    model_list: ModelList


class ProviderPlaces(Protocol):
    """Access to providers of organizations, and to those of the environment for the default
    organization. No request is retried, or sent to another place."""

    async def places(self, organization_id: OrganizationId, name: str) -> tuple[ProviderPlace, ...]:
        """The places of a provider; empty if there is no such provider. Raises ModelError
        `model_auth` if it has no key, `model_rejected` if its key is unavailable or its address not
        permitted."""
        ...

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        """Names of all providers."""
        ...


class ModelProviderStore(Protocol):
    """Model providers of organizations; the adapter encrypts keys at rest."""

    async def add(self, provider: ModelProvider, audit: AuditEvent) -> None:
        """Store a new provider. Raises CONFLICT `model_provider_exists` if the name is in use in
        the organization, `too_many_model_providers` beyond MAX_PROVIDERS."""
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
