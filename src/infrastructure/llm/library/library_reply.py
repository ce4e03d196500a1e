"""Replies of pydantic-ai as ours: deltas of its events, and the finished response."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)

from application.models.ports import ModelReply, ReasoningDelta, RequestedCall, TextDelta
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.provider_errors import gave_up, stalled
from infrastructure.llm.reply_parts import finished_reply, requested_call
from infrastructure.llm.wire_content import malformed_params

_encode = msgspec.json.Encoder().encode
_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_call": FinishReason.TOOL_CALLS,
}
_OWN_REASONS = {
    "model_context_window_exceeded": FinishReason.CONTEXT_EXCEEDED,
    "refusal": FinishReason.REFUSAL,
}
"""Of vendors, where the library has no word for them."""


def delta_of(event: ModelResponseStreamEvent) -> TextDelta | ReasoningDelta | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(text=text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return TextDelta(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ReasoningDelta(text=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return ReasoningDelta(text=text)
        case _:
            return None


def reply_of(model: str, response: ModelResponse, *, origin: str) -> ModelReply:
    """Calls of the response and of its items are in the same order. Raises ModelError for an
    incomplete response."""
    parts = response.parts
    calls = [_requested(part) for part in parts if isinstance(part, ToolCallPart)]
    texts = [part.content for part in parts if isinstance(part, TextPart)]
    finish = _finish_reason(response)
    if calls and finish is FinishReason.STOP:
        finish = FinishReason.TOOL_CALLS
    reply = finished_reply(model, texts, calls, _usage(response), finish)
    return replace(reply, items=_items(response, reply.calls, origin))


def _finish_reason(response: ModelResponse) -> FinishReason:
    """Raises ModelError if the provider failed, or the stream ended before the reply."""
    own = str((response.provider_details or {}).get("finish_reason") or "").lower()
    if own in _OWN_REASONS:
        return _OWN_REASONS[own]
    if response.finish_reason == "error":
        raise gave_up()
    if response.finish_reason is None and not own:
        raise stalled()
    return _FINISH_REASONS.get(response.finish_reason or "", FinishReason.OTHER)


def _requested(part: ToolCallPart) -> RequestedCall:
    arguments = part.args if isinstance(part.args, str) else _encode(part.args or {}).decode()
    return requested_call(part.tool_name, arguments)


def _items(response: ModelResponse, calls: Sequence[RequestedCall], origin: str) -> ProviderItems | None:
    """None if text and calls say all of it."""
    if not any(_is_own(part) for part in response.parts):
        return None
    waiting = iter(calls)
    parts = [_sendable(part, next(waiting)) if isinstance(part, ToolCallPart) else part for part in response.parts]
    return ProviderItems(origin=origin, data=ModelMessagesTypeAdapter.dump_json([replace(response, parts=parts)]))


def _is_own(part: ModelResponsePart) -> bool:
    return not isinstance(part, TextPart | ToolCallPart) or part.provider_details is not None


def _sendable(part: ToolCallPart, call: RequestedCall) -> ToolCallPart:
    return part if call.malformed is None else replace(part, args=malformed_params(call.malformed))


def _usage(response: ModelResponse) -> ModelUsage:
    usage = response.usage
    if not usage.input_tokens and not usage.output_tokens:
        return ModelUsage(estimated=True)
    return ModelUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.details.get("thoughts_tokens") or usage.details.get("reasoning_tokens") or 0,
    )
