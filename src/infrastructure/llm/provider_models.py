"""From a provider's configuration to the adapter that speaks its wire."""

from typing import assert_never

import httpx

from application.models.ports import LanguageModel
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.exchange import Patience
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.providers import ProviderConfig, ProviderKind


class ProviderModels:
    """Opens providers, all over one HTTP client, which it closes in the end."""

    def __init__(self, *, http: httpx.AsyncClient, streaming: bool = True, patience: Patience | None = None) -> None:
        self._http = http
        self._streaming = streaming
        self._patience = patience or Patience()

    def open(self, provider: ProviderConfig) -> LanguageModel:
        """The models of `provider`. Opening makes no request."""
        match provider.kind:
            case ProviderKind.OPENAI:
                return OpenAICompatibleModels(
                    provider=provider, http=self._http, streaming=self._streaming, patience=self._patience
                )
            case ProviderKind.ANTHROPIC:
                return AnthropicModels(
                    provider=provider, http=self._http, streaming=self._streaming, patience=self._patience
                )
            case _:
                assert_never(provider.kind)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._http.aclose()
