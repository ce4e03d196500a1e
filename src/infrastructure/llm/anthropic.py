"""LanguageModel over the Anthropic messages API and compatible servers."""

import re
import time
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

from application.models.ports import ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.anthropic_reply import AnthropicReply
from infrastructure.llm.anthropic_wire import AnthropicWire
from infrastructure.llm.exchange import ModelExchange, ProviderHttp, ReplyLimits
from infrastructure.llm.items_origin import items_origin
from infrastructure.llm.model_families import taken_by_messages
from infrastructure.llm.model_inputs import WiresByInput, refuses_inputs
from infrastructure.llm.provider_headers import call_headers
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.wire_parameters import with_taken_settings

_DEFAULT_MAX_TOKENS = 8192
WIRE = "messages"
"""In the origin of items."""
_MAX_MODELS = 1_000
_REFUSED_THINKING = re.compile(r"(?:signature|blocks?).{0,40}thinking|thinking.{0,60}(?:signature|modified)", re.DOTALL)


class AnthropicModels:
    """The models of one provider, by `POST {base_url}/v1/messages`, or on Vertex AI by an address
    for each model.

    - Replies with thinking go back as they came, in their order (ADR 0047).
    - Thinking that the provider does not take back is left out.
    - Images and files that the provider refuses are described in the same request, and in later
      ones with the same messages.

    Raises ModelError only.
    """

    def __init__(
        self,
        *,
        provider: ProviderConfig,
        http: ProviderHttp,
        default_max_tokens: int = _DEFAULT_MAX_TOKENS,
        reply_limits: ReplyLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wires = WiresByInput(
            provider,
            lambda takes: AnthropicWire(
                takes=takes,
                default_max_tokens=default_max_tokens,
                on_vertex=provider.kind is ProviderKind.VERTEX,
            ),
        )
        self._provider = provider
        self._origins: LruCache[str, str] = LruCache(_MAX_MODELS)
        self._exchanges: LruCache[str, ModelExchange] = LruCache(_MAX_MODELS)
        headers, limits, redactor = call_headers(provider), reply_limits or ReplyLimits(), provider.redactor()
        self._open: Callable[[str], ModelExchange] = lambda name: ModelExchange(
            provider=http.to(_address_of(provider, name), headers),
            reply_limits=limits,
            monotonic=monotonic,
            redactor=redactor,
        )

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        request = with_taken_settings(request, taken_by_messages)
        origin = self._origins.get(name)
        if origin is None:
            origin = items_origin(self._provider, WIRE, name)
            self._origins.put(name, origin)
        exchange = self._exchanges.get(name)
        if exchange is None:
            exchange = self._open(name)
            self._exchanges.put(name, exchange)
        wire = self._wires.for_request(name, request)
        return exchange.run(
            wire.body(name, request, origin=origin),
            AnthropicReply(request.model, origin=origin),
            _OtherBodies(self._wires, wire, request, name, origin),
        )


def _address_of(provider: ProviderConfig, model_name: str) -> str:
    base_url = provider.base_url.rstrip("/").removesuffix("/v1")
    if provider.kind is not ProviderKind.VERTEX:
        return f"{base_url}/v1/messages"
    place = provider.place_on_vertex
    return f"{base_url}/{place}/publishers/anthropic/models/{quote(model_name, safe='@')}:streamRawPredict"


class _OtherBodies:
    """The bodies of one request that are sent instead of a refused one: without thinking that the
    provider did not take back, such as that of another account, and with descriptions of images and
    files."""

    __slots__ = ("_name", "_origin", "_request", "_wire", "_wires")

    def __init__(
        self, wires: WiresByInput[AnthropicWire], wire: AnthropicWire, request: ModelRequest, name: str, origin: str
    ) -> None:
        self._wires = wires
        self._wire = wire
        self._request = request
        self._name = name
        self._origin = origin

    def after(self, error: ModelError) -> bytes | None:
        said = error.provider_error
        if said is None:
            return None
        if self._origin and _REFUSED_THINKING.search(said.message):
            self._origin = ""
        elif self._wire is not self._wires.describing() and refuses_inputs(error, self._request):
            self._wires.remember_refusal(self._name, self._request)
            self._wire = self._wires.describing()
        else:
            return None
        return self._wire.body(self._name, self._request, origin=self._origin)
