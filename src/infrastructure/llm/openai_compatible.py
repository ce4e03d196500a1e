"""LanguageModel over OpenAI's chat completions API and compatible servers."""

import time
from collections.abc import AsyncIterator, Callable

from application.models.ports import ModelEvent, ModelRequest
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.openai_reply import OpenAIReply
from infrastructure.llm.openai_wire import OpenAIWire
from infrastructure.llm.providers import ProviderConfig


class OpenAICompatibleModels:
    """The models of one provider, by `POST {base_url}/chat/completions`. A whole reply is accepted
    where the server does not stream. Raises ModelError only."""

    def __init__(
        self,
        *,
        provider: ProviderConfig,
        http: ProviderHttp,
        streaming: bool = True,
        reply_limits: ReplyLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": ENCODINGS,
            "user-agent": "dragoman",
        }
        if provider.api_key is not None:
            headers["authorization"] = f"Bearer {provider.api_key}"
        self._wire = OpenAIWire(
            streaming=streaming,
            image_input=provider.image_input,
            token_limit_field="max_completion_tokens" if provider.is_official else "max_tokens",
        )
        self._exchange = ModelExchange(
            provider=http.to(f"{provider.base_url.rstrip('/')}/chat/completions", headers),
            streaming=streaming,
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        model_name = request.model.partition(":")[2]
        return self._exchange.run(self._wire.body(model_name, request), OpenAIReply(request.model))
