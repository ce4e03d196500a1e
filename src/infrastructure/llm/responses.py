"""LanguageModel over OpenAI's Responses API."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from application.models.ports import ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.items_origin import items_origin
from infrastructure.llm.model_families import taken_by_responses
from infrastructure.llm.model_inputs import WiresByInput, refuses_inputs
from infrastructure.llm.provider_headers import call_headers
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses_reply import ResponsesReply
from infrastructure.llm.responses_wire import ResponsesWire
from infrastructure.llm.wire_parameters import with_taken_settings

WIRE = "responses"
"""In the origin of items."""
_MAX_MODELS = 1_000
_ENCRYPTED, _SUMMARY = "encrypted reasoning", "summary"
_REFUSALS = {
    _ENCRYPTED: ("encrypted content is not supported",),
    _SUMMARY: ("reasoning.summary", "reasoning summaries"),
}
"""Words of refusals. OpenAI has summaries for verified organizations only."""


class ResponsesModels:
    """The models of one provider, by `POST {base_url}/responses`.

    - A whole reply is accepted where the server does not stream.
    - A model without encrypted reasoning, or without summaries of it, refuses the request for them; it is then asked
      without, until the process ends.
    - Items that the provider cannot decrypt (such as those of another account) are sent neutrally instead.
    - Images and files that the provider refuses are described instead.

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
        self._wires = WiresByInput(provider, lambda takes: ResponsesWire(streaming=streaming, takes=takes))
        self._exchange = ModelExchange(
            provider=http.to(f"{provider.base_url.rstrip('/')}/responses", call_headers(provider)),
            streaming=streaming,
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )
        self._provider = provider
        self._refused: LruCache[str, frozenset[str]] = LruCache(_MAX_MODELS)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        request = with_taken_settings(request, taken_by_responses)
        origin = items_origin(self._provider, WIRE, name)
        sent_as = _Sending(
            without=self._refused.get(name) or frozenset(),
            replays=True,
            attaches=not self._wires.has_refused(name, request),
        )
        while True:
            begun = False
            try:
                async with aclosing(self._events(name, request, origin, sent_as)) as events:
                    async for event in events:
                        begun = True
                        yield event
                    return
            except ModelError as error:
                other = None if begun else sent_as.after(error, request)
                if other is None:
                    raise
                if sent_as.attaches and not other.attaches:
                    self._wires.remember_refusal(name, request)
                sent_as = other
                self._refused.put(name, sent_as.without)

    def _events(
        self, name: str, request: ModelRequest, origin: str, sent_as: "_Sending"
    ) -> AsyncGenerator[ModelEvent, None]:
        wire = self._wires.of(name) if sent_as.attaches else self._wires.describing()
        body = wire.body(
            name,
            request,
            origin=origin if sent_as.replays else "",
            encrypted_reasoning=_ENCRYPTED not in sent_as.without,
            summary=_SUMMARY not in sent_as.without,
        )
        return self._exchange.run(body, ResponsesReply(request.model, origin=origin))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """How a request is sent: `without` what the model refused. `replays`: items go back as they came. `attaches`: images
    and files are not just described."""

    without: frozenset[str]
    replays: bool
    attaches: bool

    def after(self, error: ModelError, request: ModelRequest) -> "_Sending | None":
        """How it is sent again after this refusal; None if that would not help."""
        said = error.provider_error
        if said is None:
            return None
        # Only the message tells these refusals from others with their codes.
        message = said.message.lower()
        for wish, refusals in _REFUSALS.items():
            if wish not in self.without and any(words in message for words in refusals):
                return replace(self, without=self.without | {wish})
        if self.replays and said.code == "invalid_encrypted_content":
            return replace(self, replays=False)
        if self.attaches and refuses_inputs(error, request):
            return replace(self, attaches=False)
        return None
