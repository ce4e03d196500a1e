"""Model providers, loaded when first used or warmed beside the event loop: importing the HTTP client takes most of a
second that a start need not wait for."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from application.models.ports import LanguageModel
from infrastructure.llm.providers import ProviderConfig


class OpenProviders(Protocol):
    """Adapters by provider, over HTTP clients that they share."""

    def open(self, provider: ProviderConfig) -> LanguageModel:
        """The models of a provider."""
        ...

    async def close(self) -> None:
        """Close the HTTP clients."""
        ...


class LazyProviders:
    """`open` for RoutedModels; `load` imports and builds, does no I/O."""

    def __init__(self, load: Callable[[], OpenProviders]) -> None:
        self._load = load
        self._loaded: OpenProviders | None = None

    def open(self, provider: ProviderConfig) -> LanguageModel:
        """The models of a provider; loads now if nobody warmed it."""
        return self._keep(self._loaded or self._load()).open(provider)

    async def warm(self) -> None:
        """Load beside the event loop."""
        if self._loaded is None:
            self._keep(await asyncio.to_thread(self._load))

    def _keep(self, loaded: OpenProviders) -> OpenProviders:
        """Whoever was first stays; what another one loaded meanwhile has opened nothing yet."""
        self._loaded = self._loaded or loaded
        return self._loaded

    async def close(self) -> None:
        """Close what was opened."""
        if self._loaded is not None:
            await self._loaded.close()
