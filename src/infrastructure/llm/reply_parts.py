"""What the replies of all wires have in common: tool arguments as JSON text, and the words for why a reply ended."""

import msgspec

from application.models.ports import ModelReply, RequestedCall
from domain.json_value import JsonObject
from domain.runs.usage import ModelUsage

_decode = msgspec.json.Decoder().decode


class CallInProgress:
    """A tool call whose argument text is still arriving."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self, name: str = "", call_id: str | None = None) -> None:
        self.name = name
        self.id = call_id
        self.arguments: list[str] = []

    def requested(self) -> RequestedCall:
        """The finished call. No argument text at all means no arguments."""
        return requested_call(self.name, "".join(self.arguments))


def requested_call(name: str, arguments: str) -> RequestedCall:
    """A call with its arguments decoded, or kept as `malformed` text if they are not a JSON object."""
    if not arguments.strip():
        return RequestedCall(name=name, arguments={})
    try:
        value = _decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return RequestedCall(name=name, arguments={}, malformed=arguments)
    decoded: JsonObject = value
    return RequestedCall(name=name, arguments=decoded)


FINISH_REASONS = {
    "function_call": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""The providers' words for why a reply ended, in the one vocabulary of ModelReply: `stop`, `tool_calls`, `length`,
`content_filter`. Words missing here stay as they are."""


def finished_reply(
    model: str, texts: list[str], calls: list[RequestedCall], usage: ModelUsage, finish_reason: str
) -> ModelReply:
    """The complete reply."""
    return ModelReply(
        model=model,
        text="".join(texts),
        calls=tuple(calls),
        usage=usage,
        finish_reason=FINISH_REASONS.get(finish_reason, finish_reason),
    )
