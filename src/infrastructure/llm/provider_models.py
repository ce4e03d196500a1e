"""Opens the adapter for a provider's configuration."""

from functools import partial

from application.models.ports import LanguageModel, ModelList
from application.system.ports import OutboundPolicy
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.deployments import DeploymentModels, OpenDeployment
from infrastructure.llm.exchange import ProviderHttp, ReplyLimits
from infrastructure.llm.model_families import native_schema
from infrastructure.llm.model_list import HttpModelList
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.output_schemas import OutputSchemas
from infrastructure.llm.provider_errors import address_refused
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses import ResponsesModels


class ProviderModels:
    """Opens providers over two HTTP clients, closed at the end: `guarded_http` for providers of
    organizations, bound by `outbound`, and `http` for those of the operator."""

    def __init__(
        self,
        *,
        http: ProviderHttp,
        guarded_http: ProviderHttp,
        outbound: OutboundPolicy,
        streaming: bool = True,
        reply_limits: ReplyLimits | None = None,
    ) -> None:
        self._http = http
        self._guarded_http = guarded_http
        self._outbound = outbound
        self._streaming = streaming
        self._reply_limits = reply_limits or ReplyLimits()

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
        http = self._http_of(provider)
        adapter: type[AnthropicModels | ResponsesModels | OpenAICompatibleModels] = AnthropicModels
        if provider.kind.is_openai_compatible:
            adapter = ResponsesModels if provider.speaks_responses else OpenAICompatibleModels
        opened = adapter(provider=provider, http=http, streaming=self._streaming, reply_limits=self._reply_limits)
        return OutputSchemas(opened, partial(native_schema, provider))

    def model_list(self, provider: ProviderConfig) -> ModelList:
        """The list of a provider without deployments. Raises ModelError like `open`."""
        return HttpModelList(provider=provider, http=self._http_of(provider))

    def _http_of(self, provider: ProviderConfig) -> ProviderHttp:
        if not provider.guarded:
            return self._http
        if (refusal := self._outbound.refusal(provider.base_url)) is not None:
            raise address_refused(refusal)
        return self._guarded_http

    async def close(self) -> None:
        await self._http.aclose()
        await self._guarded_http.aclose()
