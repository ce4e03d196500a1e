"""LanguageModel over OpenAI's chat completions API and compatible servers."""

import time
from collections.abc import AsyncIterator, Callable

from application.models.ports import ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from domain.model_providers.provider import EchoReasoning, ProviderKind
from infrastructure.llm.chat_echo import MAX_CHANGES, ChatEcho, chat_echo
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.items_origin import items_origin
from infrastructure.llm.model_families import taken_by_chat
from infrastructure.llm.model_inputs import WiresByInput, refuses_inputs
from infrastructure.llm.openai_reply import OpenAIReply
from infrastructure.llm.openai_wire import ChatDialect, OpenAIWire
from infrastructure.llm.provider_headers import call_headers
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.wire_parameters import with_taken_settings

WIRE = "chat"
"""In the origin of items."""
_MAX_MODELS = 1_000
_COMMON = ChatDialect()
_OPENAI = ChatDialect(token_limit_field="max_completion_tokens")
_DIALECTS = {
    ProviderKind.ALIBABA: ChatDialect(audio_urls=True),
    ProviderKind.AZURE: _OPENAI,
    ProviderKind.GITHUB_COPILOT: _OPENAI,
    ProviderKind.META: ChatDialect(tool_choice=False),
    ProviderKind.MISTRAL: ChatDialect(stream_options=False, short_ids=True),
    ProviderKind.SNOWFLAKE: ChatDialect(
        token_limit_field="max_completion_tokens", claude_reasoning=True, ends_without_reason=True
    ),
}
"""Of vendors that refuse what others take. Mistral refuses unknown fields, and ids of calls that it
could not have given."""


class OpenAICompatibleModels:
    """The models of one provider, by `POST {base_url}/chat/completions`.

    - A whole reply is accepted where the server does not stream.
    - Fields that only the provider knows go back to it (ADR 0047). A provider that misses some of
      them, or refuses them, says so; the request is then sent with more or less of them, and so are
      later ones to the same model.
    - Images and files that the provider refuses are described in the same request.

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
        dialect = _dialect(provider)
        self._ends_without_reason = dialect.ends_without_reason
        self._wires = WiresByInput(provider, lambda takes: OpenAIWire(takes=takes, dialect=dialect))
        self._exchange = ModelExchange(
            provider=http.to(f"{provider.base_url.rstrip('/')}/chat/completions", call_headers(provider)),
            reply_limits=reply_limits or ReplyLimits(),
            monotonic=monotonic,
            redactor=provider.redactor(),
        )

        self._provider = provider
        self._models: LruCache[str, _Model] = LruCache(_MAX_MODELS)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        model = self._models.get(name) or self._new_model(name)
        request = with_taken_settings(request, taken_by_chat)
        wire = self._wires.for_request(name, request)
        return self._exchange.run(
            wire.body(name, request, origin=model.origin, echo=model.echo),
            OpenAIReply(request.model, origin=model.origin, ends_without_reason=self._ends_without_reason),
            _OtherBodies(self._wires, wire, request, name, model),
        )

    def _new_model(self, name: str) -> "_Model":
        provider = self._provider
        # OpenAI itself has no fields that it needs back, and refuses unknown ones.
        wanted = EchoReasoning.NEVER if provider.is_openai else provider.echo_reasoning
        origin = "" if wanted is EchoReasoning.NEVER else items_origin(provider, WIRE, name)
        model = _Model(origin, chat_echo(wanted, name))
        self._models.put(name, model)
        return model


def _dialect(provider: ProviderConfig) -> ChatDialect:
    """OpenAI's reasoning models refuse `max_tokens`, other vendors do not know its successor."""
    if provider.is_openai:
        return _OPENAI
    return _DIALECTS.get(provider.kind, _COMMON)


class _Model:
    """A model of the provider. `echo` is what goes back to it, as its refusals have taught."""

    __slots__ = ("echo", "origin")

    def __init__(self, origin: str, echo: ChatEcho) -> None:
        self.origin = origin
        self.echo = echo


class _OtherBodies:
    """The bodies of one request that are sent instead of a refused one."""

    __slots__ = ("_before", "_changes", "_model", "_name", "_request", "_sent_as", "_wire", "_wires")

    def __init__(
        self, wires: WiresByInput[OpenAIWire], wire: OpenAIWire, request: ModelRequest, name: str, model: _Model
    ) -> None:
        self._wires = wires
        self._wire = wire
        self._request = request
        self._name = name
        self._model = model
        self._before = self._sent_as = model.echo
        self._changes = 0

    def after(self, error: ModelError) -> bytes | None:
        """What another request has learned meanwhile is tried first. What does not help is
        forgotten, unless the error is of another kind."""
        if error.code != "model_rejected":
            return None
        model = self._model
        if self._wire is not self._wires.describing() and refuses_inputs(error, self._request):
            self._wires.remember_refusal(self._name, self._request)
            self._wire = self._wires.describing()
            return self._wire.body(self._name, self._request, origin=model.origin, echo=self._sent_as)
        echo = self._sent_as.after(error) if model.echo is self._sent_as else model.echo
        if echo is None or self._changes == MAX_CHANGES:
            if model.echo is self._sent_as:
                model.echo = self._before
            return None
        self._changes += 1
        self._sent_as = model.echo = echo
        return self._wire.body(self._name, self._request, origin=model.origin, echo=echo)
