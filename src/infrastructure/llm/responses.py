"""LanguageModel over OpenAI's Responses API."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from application.models.ports import ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses_reply import ResponsesReply
from infrastructure.llm.responses_wire import ResponsesWire

_MAX_MODELS = 1_000


class ResponsesModels:
    """The models of one provider, by `POST {base_url}/responses`.

    - A whole reply is accepted where the server does not stream.
    - A model without encrypted reasoning refuses the request for it; it is then asked without.

    Raises ModelError only.
    """

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
        self._wire = ResponsesWire(streaming=streaming, image_input=provider.image_input)
        self._exchange = ModelExchange(
            provider=http.to(f"{provider.base_url.rstrip('/')}/responses", headers),
            streaming=streaming,
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )
        self._plain_models: LruCache[str, bool] = LruCache(_MAX_MODELS)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        if name not in self._plain_models:
            try:
                async with aclosing(self._events(name, request, encrypted_reasoning=True)) as events:
                    async for event in events:
                        yield event
                    return
            except ModelError as error:
                if not _lacks_encrypted_reasoning(error):
                    raise
            self._plain_models.put(name, True)
        async with aclosing(self._events(name, request, encrypted_reasoning=False)) as events:
            async for event in events:
                yield event

    def _events(
        self, name: str, request: ModelRequest, *, encrypted_reasoning: bool
    ) -> AsyncGenerator[ModelEvent, None]:
        body = self._wire.body(name, request, encrypted_reasoning=encrypted_reasoning)
        return self._exchange.run(body, ResponsesReply(request.model))


def _lacks_encrypted_reasoning(error: ModelError) -> bool:
    """Whether the provider refused `include`, which only its message says."""
    said = error.provider_error
    return said is not None and said.status == 400 and "encrypted content is not supported" in said.message.lower()
