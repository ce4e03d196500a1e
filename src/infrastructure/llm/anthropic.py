"""LanguageModel over the Anthropic messages API and compatible servers."""

import time
from collections.abc import AsyncIterator, Callable

from application.models.ports import ModelEvent, ModelRequest
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.anthropic_reply import AnthropicReply
from infrastructure.llm.anthropic_wire import AnthropicWire
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.providers import ProviderConfig

_API_VERSION = "2023-06-01"
_DEFAULT_MAX_TOKENS = 8192


class AnthropicModels:
    """The models of one provider, by `POST {base_url}/v1/messages`. Raises ModelError only."""

    def __init__(
        self,
        *,
        provider: ProviderConfig,
        http: ProviderHttp,
        streaming: bool = True,
        default_max_tokens: int = _DEFAULT_MAX_TOKENS,
        reply_limits: ReplyLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": ENCODINGS,
            "user-agent": "dragoman",
            "anthropic-version": _API_VERSION,
        }
        if provider.api_key is not None:
            headers["x-api-key"] = provider.api_key
        base_url = provider.base_url.rstrip("/").removesuffix("/v1")
        self._wire = AnthropicWire(
            streaming=streaming, image_input=provider.image_input, default_max_tokens=default_max_tokens
        )
        self._exchange = ModelExchange(
            provider=http.to(f"{base_url}/v1/messages", headers),
            streaming=streaming,
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        model_name = request.model.partition(":")[2]
        return self._exchange.run(self._wire.body(model_name, request), AnthropicReply(request.model))
