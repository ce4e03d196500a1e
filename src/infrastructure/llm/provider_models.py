"""From a provider's configuration to the adapter that speaks its wire."""

from typing import assert_never

from application.models.ports import LanguageModel
from application.system.ports import OutboundPolicy
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.exchange import Patience, ProviderHttp
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.provider_errors import address_refused
from infrastructure.llm.providers import ProviderConfig


class ProviderModels:
    """Opens providers over two ways out over HTTP, which it closes in the end: `guarded_http`, which reaches only what
    `outbound` permits, for the providers of organizations, and `http` for those that the operator set up."""

    def __init__(
        self,
        *,
        http: ProviderHttp,
        guarded_http: ProviderHttp,
        outbound: OutboundPolicy,
        streaming: bool = True,
        patience: Patience | None = None,
    ) -> None:
        self._http = http
        self._guarded_http = guarded_http
        self._outbound = outbound
        self._streaming = streaming
        self._patience = patience or Patience()

    def open(self, provider: ProviderConfig) -> LanguageModel:
        """The models of `provider`. Opening makes no request. Raises ModelError `model_rejected` for an address that may
        not be reached; what its name resolves to is looked at on the way there."""
        if provider.guarded and (refusal := self._outbound.refusal(provider.base_url)) is not None:
            raise address_refused(refusal)
        http = self._guarded_http if provider.guarded else self._http
        match provider.kind:
            case ProviderKind.OPENAI:
                return OpenAICompatibleModels(
                    provider=provider, http=http, streaming=self._streaming, patience=self._patience
                )
            case ProviderKind.ANTHROPIC:
                return AnthropicModels(provider=provider, http=http, streaming=self._streaming, patience=self._patience)
            case _:
                assert_never(provider.kind)

    async def close(self) -> None:
        """Close both ways."""
        await self._http.aclose()
        await self._guarded_http.aclose()
