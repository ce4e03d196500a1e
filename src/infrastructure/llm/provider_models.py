"""Opens the adapter for a provider's configuration."""

from functools import partial

from application.models.ports import LanguageModel, ModelError, ModelList
from application.system.ports import OutboundPolicy
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.deployments import DeploymentModels, OpenDeployment
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from infrastructure.llm.identities.provider_identity import identified
from infrastructure.llm.model_families import native_schema
from infrastructure.llm.model_list import HttpModelList
from infrastructure.llm.native_models import LoadNative, NativeModels
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.output_schemas import OutputSchemas
from infrastructure.llm.provider_errors import address_refused
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.providers_extra import EXTRA_MISSING
from infrastructure.llm.responses import ResponsesModels
from infrastructure.llm.vertex import VertexModels

_Wire = type[AnthropicModels] | type[ResponsesModels] | type[OpenAICompatibleModels]


class ProviderModels:
    """Opens providers over two HTTP clients, closed at the end: `guarded_http` for providers of
    organizations, bound by `outbound`, and `http` for those of the operator and for the machine's
    identity. `native` loads the adapter of vendors' own APIs; None without the extra
    `providers`."""

    def __init__(
        self,
        *,
        http: ProviderHttp,
        guarded_http: ProviderHttp,
        outbound: OutboundPolicy,
        native: LoadNative | None = None,
        reply_limits: ReplyLimits | None = None,
        addresses: CloudAddresses | None = None,
    ) -> None:
        self._http = http
        self._guarded_http = guarded_http
        self._outbound = outbound
        self._native = native
        self._reply_limits = reply_limits or ReplyLimits()
        self._addresses = addresses or CloudAddresses()

    def open(self, provider: ProviderConfig) -> LanguageModel:
        """The models of `provider`, without a request. Raises ModelError `model_rejected` for a
        forbidden URL; resolved addresses are checked when connecting."""
        if provider.deployments:
            return DeploymentModels(
                [
                    OpenDeployment(name=entry.name, weight=entry.weight, models=self.open(provider.at(entry)))
                    for entry in provider.deployments
                ]
            )
        http = self._identified(provider)
        if provider.kind is ProviderKind.VERTEX:
            opened: LanguageModel = VertexModels(
                provider,
                gemini=self._native_of(provider, http),
                messages=self._wire(AnthropicModels, provider, http),
                chat=self._wire(OpenAICompatibleModels, provider.over_chat_on_vertex(), http),
            )
        elif provider.is_native:
            opened = self._native_of(provider, http)
        else:
            opened = self._wire(_wire_of(provider), provider, http)
        return OutputSchemas(opened, partial(native_schema, provider))

    def model_list(self, provider: ProviderConfig) -> ModelList:
        """The list of a provider without deployments. Raises ModelError like `open`."""
        return HttpModelList(provider=provider, http=self._identified(provider))

    def _wire(self, adapter: _Wire, provider: ProviderConfig, http: ProviderHttp) -> LanguageModel:
        return adapter(provider=provider, http=http, reply_limits=self._reply_limits)

    def _native_of(self, provider: ProviderConfig, http: ProviderHttp) -> LanguageModel:
        load = self._native
        if load is None:
            raise ModelError("model_rejected", f"The model provider {provider.name!r} {EXTRA_MISSING}", retryable=False)
        return NativeModels(
            lambda loop: load()(
                provider,
                http,
                reply_limits=self._reply_limits,
                addresses=self._addresses,
                loop=loop,
            )
        )

    def _identified(self, provider: ProviderConfig) -> ProviderHttp:
        return identified(provider, self._http_of(provider), self._http, self._addresses)

    def _http_of(self, provider: ProviderConfig) -> ProviderHttp:
        if not provider.guarded:
            return self._http
        if (refusal := self._outbound.refusal(provider.base_url)) is not None:
            raise address_refused(refusal)
        return self._guarded_http

    async def close(self) -> None:
        await self._http.aclose()
        await self._guarded_http.aclose()


def _wire_of(provider: ProviderConfig) -> _Wire:
    if not provider.kind.is_openai_compatible:
        return AnthropicModels
    return ResponsesModels if provider.speaks_responses else OpenAICompatibleModels
