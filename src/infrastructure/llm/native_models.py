"""Models over the vendor's own API, whose adapter is loaded at first use. Above: provider models.
Below: `library`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol

from application.models.ports import LanguageModel, ModelEvent, ModelRequest
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from infrastructure.llm.providers import ProviderConfig


class OpenNative(Protocol):
    def __call__(
        self,
        provider: ProviderConfig,
        http: ProviderHttp,
        *,
        reply_limits: ReplyLimits,
        addresses: CloudAddresses,
        loop: asyncio.AbstractEventLoop,
    ) -> LanguageModel:
        """The adapter for a provider; `http` adds its identity."""
        ...


LoadNative = Callable[[], OpenNative]
"""Called in a thread: the SDKs take seconds to import."""


class NativeModels:
    """A LanguageModel that is loaded once, in a thread, by the first request."""

    def __init__(self, load: Callable[[asyncio.AbstractEventLoop], LanguageModel]) -> None:
        self._load = load
        self._loading = asyncio.Lock()
        self._loaded: LanguageModel | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        events = (await self._models()).stream(request)
        try:
            async for event in events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _models(self) -> LanguageModel:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load, asyncio.get_running_loop())
            return self._loaded
