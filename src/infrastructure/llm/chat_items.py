"""Items of chat completions: the model's message with the fields that only its provider knows, as
it goes back."""

from collections.abc import Sequence

import msgspec

from application.models.ports import RequestedCall
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import ToolUse
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.reply_parts import CallInProgress
from infrastructure.llm.wire_content import malformed_params

REASONING = "reasoning_content"
REASONING_TEXTS = (REASONING, "reasoning", "reasoning_text")

_encode = msgspec.json.Encoder().encode


class _Call(msgspec.Struct):
    id: str | None = None


class _Message(msgspec.Struct):
    tool_calls: list[_Call] = []


_decode_ids = msgspec.json.Decoder(list[_Message]).decode
_decode_fields = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_calls = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def chat_items(
    origin: str, text: str, calls: Sequence[RequestedCall], own: JsonObject, said: Sequence[CallInProgress]
) -> ProviderItems | None:
    """The items of a reply; None if text and calls say all of it. `said` are its calls with the
    provider's ids and fields."""
    fields_of_calls = [{} if call.own is None else call.own.finished() for call in said]
    if (not own and not any(fields_of_calls)) or (not text and not calls):
        return None
    message: JsonObject = {"role": "assistant", "content": text or None, **own}
    if calls:
        ids = _distinct_ids(said)
        message["tool_calls"] = [
            _call_item(own_call, call, call_id, fields)
            for own_call, call, call_id, fields in zip(said, calls, ids, fields_of_calls, strict=True)
        ]
    return ProviderItems(origin=origin, data=_encode([message]))


def shown_reasoning(own: JsonObject) -> str:
    """The reasoning in a piece of a message. Several fields may repeat the same text."""
    for name in REASONING_TEXTS:
        text = own.get(name)
        if isinstance(text, str) and text:
            return text
    details = own.get("reasoning_details")
    texts = [entry.get("text") or entry.get("summary") for entry in _objects(details)]
    return "".join([text for text in texts if isinstance(text, str)])


def call_ids(items: ProviderItems) -> list[str | None]:
    """The provider's ids of the calls, in their order; None for one without an id."""
    return [call.id for message in _decode_ids(items.data) for call in message.tool_calls]


def as_it_came(items: ProviderItems, uses: Sequence[ToolUse]) -> bytes:
    """The message. Calls without an id get those of `uses`."""
    if None not in call_ids(items):
        return items.data.strip()[1:-1]  # a JSON array of one message
    (message,) = _decode_fields(items.data)
    return _encode({**message, "tool_calls": _with_ids(message["tool_calls"], uses)})


def without_reasoning(items: ProviderItems, uses: Sequence[ToolUse]) -> bytes:
    """The message without texts of its reasoning. Signatures and the like stay: they are short, and
    calls need them."""
    (message,) = _decode_fields(as_it_came(items, uses).join((b"[", b"]")))
    return _encode({name: value for name, value in message.items() if name not in REASONING_TEXTS})


def _distinct_ids(calls: Sequence[CallInProgress]) -> list[str | None]:
    """The ids; none of them if two are the same, since results refer to them."""
    ids = [call.id for call in calls if call.id]
    return [call.id or None for call in calls] if len(set(ids)) == len(ids) else [None for _ in calls]


def _call_item(said: CallInProgress, call: RequestedCall, call_id: str | None, own: JsonObject) -> JsonValue:
    arguments = "".join(said.arguments).strip() or "{}"
    if call.malformed is not None:
        arguments = _encode(malformed_params(call.malformed)).decode()
    item: JsonObject = {"type": "function", **own, "function": {"name": said.name, "arguments": arguments}}
    return item if call_id is None else {"id": call_id, **item}


def _with_ids(calls: msgspec.Raw, uses: Sequence[ToolUse]) -> list[dict[str, object]]:
    return [{"id": use.id, **call} for call, use in zip(_decode_calls(calls), uses, strict=True)]


def _objects(value: JsonValue) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
