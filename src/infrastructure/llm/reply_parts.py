"""Shared parts of replies: tool arguments as JSON text, and finish reasons."""

from collections.abc import Callable

import msgspec

from application.models.ports import ModelReply, RequestedCall
from domain.json_value import JsonValue
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.provider_errors import gave_up
from infrastructure.llm.repaired_json import repaired
from infrastructure.llm.streamed_fields import StreamedFields

_decode: Callable[[bytes | str], JsonValue] = msgspec.json.Decoder().decode


class CallInProgress:
    """A tool call with incomplete argument text. `own` are fields that only the provider knows."""

    __slots__ = ("arguments", "id", "name", "own")

    def __init__(self, name: str = "", call_id: str | None = None) -> None:
        self.name = name
        self.id = call_id
        self.arguments: list[str] = []
        self.own: StreamedFields | None = None

    def own_fields(self) -> StreamedFields:
        if self.own is None:
            self.own = StreamedFields()
        return self.own

    def requested(self) -> RequestedCall:
        """The complete call. Empty argument text means no arguments."""
        return requested_call(self.name, "".join(self.arguments))


def taken_text(pieces: list[str]) -> str:
    """The pieces joined. The list is empty afterwards."""
    text = "".join(pieces)
    pieces.clear()
    return text


def requested_call(name: str, arguments: str) -> RequestedCall:
    """A call with its decoded arguments, or their text as `malformed` if they are not a JSON
    object."""
    if not arguments.strip():
        return RequestedCall(name=name, arguments={})
    try:
        value = _decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        value = _repaired_value(arguments)
    if not isinstance(value, dict):
        return RequestedCall(name=name, arguments={}, malformed=arguments)
    return RequestedCall(name=name, arguments=value)


def _repaired_value(arguments: str) -> JsonValue:
    try:
        return _decode(repaired(arguments.encode()))
    except (msgspec.DecodeError, RecursionError):
        return None


_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
    "model_context_window_exceeded": FinishReason.CONTEXT_EXCEEDED,
    "model_length": FinishReason.CONTEXT_EXCEEDED,
    "pause_turn": FinishReason.PAUSED,
}
"""Finish reasons of providers. A detail after a colon is ignored."""
_BROKEN = frozenset({"error", "network_error", "abort", "insufficient_system_resource"})
"""Finish reasons of replies that the provider aborted."""
CUT = frozenset({FinishReason.LENGTH, FinishReason.CONTEXT_EXCEEDED})
"""Finish reasons of replies that may end inside a call."""


def finish_reason_of(word: str) -> FinishReason:
    """Map a provider's finish reason. Raises ModelError if the provider failed."""
    plain = word.partition(":")[0].strip().lower()
    if plain in _BROKEN:
        raise gave_up()
    return _FINISH_REASONS.get(plain, FinishReason.OTHER)


def finished_reply(
    model: str,
    texts: list[str],
    calls: list[RequestedCall],
    usage: ModelUsage,
    finish_reason: FinishReason,
    *,
    items_of: Callable[[str, list[RequestedCall]], ProviderItems | None] = lambda text, calls: None,
) -> ModelReply:
    """The complete reply, with the items of its text and its calls. In a truncated reply, a last
    call without arguments is malformed: the cut may precede them."""
    if finish_reason in CUT and calls and not calls[-1].arguments and calls[-1].malformed is None:
        calls = [*calls[:-1], RequestedCall(name=calls[-1].name, arguments={}, malformed="")]
    text = "".join(texts)
    return ModelReply(
        model=model,
        text=text,
        calls=tuple(calls),
        usage=usage,
        finish_reason=finish_reason,
        items=items_of(text, calls),
    )
