"""Model providers in memory."""

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found, require_version
from domain.ids import OrganizationId
from domain.model_providers.provider import MAX_PROVIDERS, ModelProvider
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryModelProviderStore:
    """The `ModelProviderStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, provider: ModelProvider, audit: AuditEvent) -> None:
        """Store a new provider."""
        key = (provider.organization_id, provider.name)
        if key in self._state.model_providers:
            raise conflict("model_provider_exists", f"There is a model provider {provider.name!r} already.")
        if len(await self.all(provider.organization_id)) >= MAX_PROVIDERS:
            detail = f"An organization has at most {MAX_PROVIDERS} model providers."
            raise conflict("too_many_model_providers", detail)
        self._state.model_providers[key] = provider
        self._state.record(audit)

    async def save(self, changed: ModelProvider, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        key = (changed.organization_id, changed.name)
        stored = self._state.model_providers.get(key)
        if stored is None:
            raise not_found("model provider", changed.name)
        require_version("model provider", stored.version, expected=expected_version)
        self._state.model_providers[key] = changed
        self._state.record(audit)

    async def all(self, organization_id: OrganizationId) -> tuple[ModelProvider, ...]:
        """The organization's providers by name."""
        found = [provider for (owner, _), provider in self._state.model_providers.items() if owner == organization_id]
        return tuple(sorted(found, key=lambda provider: provider.name))

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[ModelProvider]:
        """Providers, newest first."""
        found = await self.all(organization_id)
        return newest_first(found, lambda provider: by_time(provider.created_at, provider.name), request)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove the provider."""
        if self._state.model_providers.pop((organization_id, name), None) is None:
            return False
        self._state.record(audit)
        return True
