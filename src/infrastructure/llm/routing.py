"""Routes models by `PROVIDER:NAME` to their adapters, and explains unusable ones."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelList, ModelRequest
from application.system.lru import LruCache
from domain.ids import OrganizationId
from domain.model_providers.provider import SCRIPTED
from domain.runs.model_settings import ModelSettings
from infrastructure.llm.model_families import settings_taken
from infrastructure.llm.organization_providers import ProviderUnusableError
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.scripted import ScriptedModels

MAX_OPEN = 1_000
"""Limit of open providers. Opening one is cheap: all share the connections of the HTTP client."""


class Providers(Protocol):
    async def find(self, organization_id: OrganizationId, name: str) -> ProviderConfig | None:
        """The provider with its key, or None. Raises ProviderUnusableError."""
        ...

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]: ...


class OpenProviders(Protocol):
    """Adapters by provider, over shared HTTP clients."""

    def open(self, provider: ProviderConfig) -> LanguageModel: ...

    def model_list(self, provider: ProviderConfig) -> ModelList: ...

    async def close(self) -> None: ...


class RoutedModels:
    """LanguageModel and ModelDirectory over the organization's providers and the scripted models. A
    provider is opened at its first use, and again after its address or key changed."""

    def __init__(
        self,
        *,
        providers: Providers,
        open_provider: Callable[[ProviderConfig], LanguageModel],
        scripted: ScriptedModels,
        max_open: int = MAX_OPEN,
    ) -> None:
        self._providers = providers
        self._open_provider = open_provider
        self._scripted = scripted
        self._opened: LruCache[tuple[OrganizationId, str], tuple[ProviderConfig, LanguageModel]] = LruCache(max_open)

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        """One sentence why `PROVIDER:NAME` is unusable, or None. Sends no request."""
        provider_name, colon, name = model.partition(":")
        if not colon or not provider_name or not name:
            return f"A model is named PROVIDER:NAME, such as openai:gpt-5-mini or scripted:hello.yaml, not {model!r}."
        if provider_name == SCRIPTED:
            return self._scripted.problem_with(name)
        try:
            await self._usable(organization_id, provider_name)
        except ProviderUnusableError as unusable:
            return unusable.reason
        return None

    async def not_taken(self, organization_id: OrganizationId, model: str, settings: ModelSettings) -> tuple[str, ...]:
        """Scripted models ignore all settings."""
        provider_name, _, name = model.partition(":")
        if not settings.stated or provider_name == SCRIPTED:
            return ()
        try:
            provider = await self._usable(organization_id, provider_name)
        except ProviderUnusableError:
            return ()
        taken = settings_taken(provider, name)
        return tuple(setting for setting in settings.stated if setting not in taken)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Raises ModelError `model_rejected` for a model with a problem (see `problem_with`)."""
        events = await self._events(request)
        try:
            async for event in events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _events(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        provider_name = request.model.partition(":")[0]
        if provider_name == SCRIPTED:
            return self._scripted.stream(request)
        try:
            provider = await self._usable(request.organization_id, provider_name)
        except ProviderUnusableError as unusable:
            raise ModelError("model_rejected", unusable.reason, retryable=False) from unusable
        return self._open(request.organization_id, provider).stream(request)

    async def _usable(self, organization_id: OrganizationId, name: str) -> ProviderConfig:
        provider = await self._providers.find(organization_id, name)
        if provider is None:
            known = ", ".join(sorted([*await self._providers.names(organization_id), SCRIPTED]))
            raise ProviderUnusableError(
                f"There is no model provider {name!r}; there are: {known}. `dragoman provider add {name} --kind KIND` adds one."
            )
        if (problem := provider.key_problem) is not None:
            raise ProviderUnusableError(problem)
        return provider

    def _open(self, organization_id: OrganizationId, provider: ProviderConfig) -> LanguageModel:
        place = (organization_id, provider.name)
        known = self._opened.get(place)
        if known is not None and (known[0] is provider or known[0] == provider):
            return known[1]
        opened = self._open_provider(provider)
        self._opened.put(place, (provider, opened))
        return opened
