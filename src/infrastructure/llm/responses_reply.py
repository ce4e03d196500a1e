"""Parses replies of the OpenAI Responses API, from events or whole. Unknown events and items are
ignored. Format: https://platform.openai.com/docs/api-reference/responses-streaming."""

import msgspec

from application.models.ports import ModelReply, RequestedCall
from domain.json_value import JsonObject
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.items_check import kept_items
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, gave_up, invalid_reply
from infrastructure.llm.repaired_json import repaired
from infrastructure.llm.reply_parts import finished_reply, requested_call, taken_text
from infrastructure.llm.responses_wire import call_ids


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, gc=False):
    """An output item. `content` is of messages only: that of reasoning has other parts."""

    type: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _IncompleteDetails(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: _Usage | None = None
    incomplete_details: _IncompleteDetails | None = None
    error: ErrorObject | str | None = None


class _Event(msgspec.Struct, gc=False):
    """`item` and `response` are decoded where they are needed: the first events repeat the whole
    request in `response`."""

    type: str = ""
    delta: str = ""
    output_index: int = 0
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    error: ErrorObject | str | None = None
    code: str | int | None = None
    message: str | None = None


class _Kind(msgspec.Struct, gc=False):
    type: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_parts = msgspec.json.Decoder(list[_Part] | None).decode
_decode_response = msgspec.json.Decoder(_Response).decode

_TEXT_DELTA, _REFUSAL_DELTA = "response.output_text.delta", "response.refusal.delta"
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_PINGS = frozenset({"keepalive", "ping"})
_REASONING_DELTAS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_READ = frozenset(
    {_TEXT_DELTA, _REFUSAL_DELTA, "response.output_item.done", *_REASONING_DELTAS, *_LAST_EVENTS, "error"}
)
_IGNORED = (
    *("created", "queued", "in_progress", "output_item.added", "content_part.added", "content_part.done"),
    *("output_text.done", "refusal.done", "reasoning_summary_text.done", "reasoning_summary_part.done"),
    *("reasoning_text.done", "function_call_arguments.delta", "function_call_arguments.done"),
)
_ENDS = frozenset({"completed", "incomplete"})
_WHOLE = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS})


class ResponsesReply:
    """Accumulates one reply. `model` is `PROVIDER:NAME`, `origin` that of its items. Items are
    taken when they are finished: what is known of them before is provisional."""

    def __init__(self, model: str, *, origin: str = "") -> None:
        self._model = model
        self._origin = origin
        self._reasoning: list[str] = []
        self._has_reasoning = False
        self._texts: list[str] = []
        self._text_indexes: set[int] = set()
        self._items: dict[int, tuple[_Item, bytes]] = {}
        self._response: _Response | None = None
        self._is_refusal = False

    ignored_types = frozenset(f"response.{kind}".encode() for kind in _IGNORED)

    @property
    def is_done(self) -> bool:
        """Whether the last event of a response was received."""
        return self._response is not None

    def read_event(self, data: bytes) -> str | None:
        """Add an event; returns its text, or None for a ping. What follows the last one is
        ignored."""
        if self._response is not None or data == b"[DONE]":
            return ""
        try:
            return self._read(_event_of(data))
        except (ValueError, RecursionError) as exc:  # ValueError: also of msgspec, and text that is not UTF-8
            raise invalid_reply("sent an event that is not one of its protocol") from exc

    def read_whole(self, data: bytes) -> str:
        """Add a whole response; returns its text."""
        try:
            return self._end(_decode_response(data))
        except (ValueError, RecursionError) as exc:
            raise invalid_reply("sent something that is not a response") from exc

    def taken_reasoning(self) -> str:
        return taken_text(self._reasoning)

    def reply(self) -> ModelReply:
        """The complete reply. Raises ModelError if the end or the name of a call is missing."""
        response = self._response
        if response is None:
            raise invalid_reply("ended its reply too early")
        items, raw = [], []
        for index in sorted(self._items):
            item, data = self._items[index]
            items.append(item)
            raw.append(data)
        calls = _calls_in(items)
        reason = self._finish_reason(response, calls)
        usage = _model_usage(response.usage)
        # Items of a reply that was cut or refused may lack what the provider requires beside them.
        if reason not in _WHOLE or not any(map(_is_more_than_neutral, items)):
            return finished_reply(self._model, self._texts, calls, usage, reason)
        kept = kept_items(lambda: _made_items(self._origin, items, raw), call_ids, calls=len(calls))
        return finished_reply(self._model, self._texts, calls, usage, reason, items_of=lambda text, calls: kept)

    def _read(self, event: _Event) -> str | None:
        kind = event.type
        if kind == _TEXT_DELTA:
            return self._add_text(event.output_index, event.delta)
        if kind == _REFUSAL_DELTA:
            self._is_refusal = True
            return self._add_text(event.output_index, event.delta)
        if kind == "response.output_item.done":
            return self._add_item(event.output_index, event.item)
        if kind in _REASONING_DELTAS:
            self._has_reasoning = True
            self._reasoning.append(event.delta)
            return ""
        if kind == "response.reasoning_summary_part.added" and self._has_reasoning:
            self._reasoning.append("\n\n")
            return ""
        if kind in _LAST_EVENTS:
            return self._end(_decode_response(event.response))
        if kind == "error":
            raise error_in_stream(event.error or ErrorObject(code=event.code, message=event.message))
        return None if kind in _PINGS else ""

    def _end(self, response: _Response) -> str:
        if response.error is not None or response.status == "failed":
            raise error_in_stream(response.error or ErrorObject())
        if response.status not in _ENDS:
            raise gave_up()
        self._response = response
        # Some servers name the items only here, as a response without a stream does.
        return "".join(
            [
                self._add_item(index, item)
                for index, item in enumerate(response.output or ())
                if index not in self._items
            ]
        )

    def _add_item(self, index: int, raw: msgspec.Raw) -> str:
        """Keep a finished item; returns its text, if no delta brought it."""
        data = repaired(bytes(raw))
        item = _decode_item(data)
        self._items[index] = item, data
        if item.type != "message" or index in self._text_indexes:
            return ""
        parts = _decode_parts(item.content) or []
        self._is_refusal |= any(part.refusal for part in parts)
        return self._add_text(index, "".join([part.text or part.refusal or "" for part in parts]))

    def _add_text(self, index: int, text: str) -> str:
        """Add a piece of the message at `index`. An empty line divides messages of one reply."""
        if not text:
            return ""
        if index not in self._text_indexes:
            self._text_indexes.add(index)
            if self._texts:
                text = f"\n\n{text}"
        self._texts.append(text)
        return text

    def _finish_reason(self, response: _Response, calls: list[RequestedCall]) -> FinishReason:
        if response.status == "incomplete":
            details = response.incomplete_details
            if details is not None and details.reason == "content_filter":
                return FinishReason.CONTENT_FILTER
            return FinishReason.LENGTH
        if self._is_refusal:
            return FinishReason.REFUSAL
        return FinishReason.TOOL_CALLS if calls else FinishReason.STOP


def _event_of(data: bytes) -> _Event:
    """Fields of events that are not read may be of any form."""
    try:
        return _decode_event(data)
    except msgspec.ValidationError:
        kind = _decode_kind(data).type
        if kind in _READ:
            raise
        return _Event(type=kind)


def _calls_in(items: list[_Item]) -> list[RequestedCall]:
    calls = [item for item in items if item.type == "function_call"]
    if any(not call.name for call in calls):
        raise invalid_reply("asked for a tool call without a name")
    return [requested_call(call.name or "", call.arguments or "") for call in calls]


def _is_more_than_neutral(item: _Item) -> bool:
    """Whether text and calls alone lose a part of it."""
    return item.type not in {"message", "function_call"} or item.phase is not None


def _made_items(origin: str, items: list[_Item], raw: list[bytes]) -> ProviderItems:
    data = b"[" + b",".join([_sendable(item, text) for item, text in zip(items, raw, strict=True)]) + b"]"
    return ProviderItems(origin=origin, data=data)


def _sendable(item: _Item, raw: bytes) -> bytes:
    """The item as it came; malformed arguments of a call inside an object."""
    if item.type != "function_call":
        return raw
    malformed = requested_call(item.name or "", item.arguments or "").malformed
    if malformed is None:
        return raw
    arguments = msgspec.json.encode({"malformed_arguments": malformed}).decode()
    fields: JsonObject = msgspec.json.decode(raw)
    return msgspec.json.encode({**fields, "arguments": arguments})


def _model_usage(usage: _Usage | None) -> ModelUsage:
    """`output_tokens` include those of the reasoning."""
    if usage is None:
        return ModelUsage(estimated=True)
    outputs = usage.output_tokens_details or _OutputDetails()
    output_tokens = max(0, usage.output_tokens or 0)
    details = usage.input_tokens_details or _InputDetails()
    input_tokens = max(0, usage.input_tokens or 0)
    cached_tokens = min(max(0, details.cached_tokens or 0), input_tokens)
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cache_write_tokens=min(max(0, details.cache_write_tokens or 0), input_tokens - cached_tokens),
        reasoning_tokens=min(max(0, outputs.reasoning_tokens or 0), output_tokens),
        estimated=not input_tokens + output_tokens,
    )
