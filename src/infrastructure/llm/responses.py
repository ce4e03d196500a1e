"""LanguageModel over OpenAI's Responses API."""

import time
from collections.abc import AsyncIterator, Callable

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
    - A model without encrypted reasoning, or without summaries of it, refuses the request for them;
      it is then asked without, until the process ends.
    - Items that the provider cannot decrypt (such as those of another account) are sent neutrally
      instead.
    - Images and files that the provider refuses are described instead.

    Raises ModelError only.
    """

    def __init__(
        self,
        *,
        provider: ProviderConfig,
        http: ProviderHttp,
        reply_limits: ReplyLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wires = WiresByInput(provider, lambda takes: ResponsesWire(takes=takes))
        self._exchange = ModelExchange(
            provider=http.to(f"{provider.base_url.rstrip('/')}/responses", call_headers(provider)),
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )
        self._provider = provider
        self._models: LruCache[str, _Model] = LruCache(_MAX_MODELS)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        model = self._models.get(name)
        if model is None:
            model = _Model(items_origin(self._provider, WIRE, name))
            self._models.put(name, model)
        bodies = _Bodies(self._wires, with_taken_settings(request, taken_by_responses), name, model)
        return self._exchange.run(bodies.next(), ResponsesReply(request.model, origin=model.origin), bodies)


class _Model:
    """A model of the provider. `without` is what it has refused to be asked for."""

    __slots__ = ("origin", "without")

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.without: frozenset[str] = frozenset()


class _Bodies:
    """The bodies of one request: the first, and those that are sent instead of a refused one."""

    __slots__ = ("_model", "_name", "_replays", "_request", "_wire", "_wires", "_without")

    def __init__(self, wires: WiresByInput[ResponsesWire], request: ModelRequest, name: str, model: _Model) -> None:
        self._wires = wires
        self._wire = wires.for_request(name, request)
        self._request = request
        self._name = name
        self._model = model
        self._without = model.without
        self._replays = True

    def next(self) -> bytes:
        return self._wire.body(
            self._name,
            self._request,
            origin=self._model.origin if self._replays else "",
            encrypted_reasoning=_ENCRYPTED not in self._without,
            summary=_SUMMARY not in self._without,
        )

    def after(self, error: ModelError) -> bytes | None:
        said = error.provider_error
        if said is None:
            return None
        # Only the message tells these refusals from others with their codes.
        message = said.message.lower()
        for wish, refusals in _REFUSALS.items():
            if wish not in self._without and any(words in message for words in refusals):
                self._without |= {wish}
                self._model.without |= {wish}
                return self.next()
        if self._replays and said.code == "invalid_encrypted_content":
            self._replays = False
        elif self._wire is not self._wires.describing() and refuses_inputs(error, self._request):
            self._wires.remember_refusal(self._name, self._request)
            self._wire = self._wires.describing()
        else:
            return None
        return self.next()
