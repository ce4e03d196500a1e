"""Parses replies of the Anthropic messages API, from events or whole. Unknown events are ignored,
as the format requires; unknown blocks are part of the items only. Format:
https://docs.anthropic.com/en/docs/build-with-claude/streaming."""

import msgspec

from application.models.ports import ModelReply, RequestedCall
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.anthropic_items import OwnBlock, call_block, call_ids, text_block
from infrastructure.llm.items_check import kept_items
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, invalid_reply
from infrastructure.llm.repaired_json import decoded, repaired
from infrastructure.llm.reply_parts import CUT, CallInProgress, finish_reason_of, finished_reply, taken_text


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Delta(msgspec.Struct, gc=False):
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct, gc=False):
    type: str = ""
    content: list[msgspec.Raw] = []
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: ErrorObject | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: msgspec.Raw = msgspec.Raw(b"{}")
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: ErrorObject | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode
_decode_block = msgspec.json.Decoder(_Block).decode


class AnthropicReply:
    """Accumulates one reply. `model` is `PROVIDER:NAME`, `origin` that of its items."""

    def __init__(self, model: str, *, origin: str = "") -> None:
        self._model = model
        self._origin = origin
        self._texts: list[str] = []
        self._text_starts: dict[int, int] = {}
        self._calls: dict[int, CallInProgress] = {}
        self._own: dict[int, OwnBlock] = {}
        self._reasoning: list[str] = []
        self._usage = _Usage()
        self._stop_reason: str | None = None
        self._is_done = False
        self._ends_in_whole_call = False

    ignored_types = frozenset({b"content_block_stop"})

    @property
    def is_done(self) -> bool:
        """Whether `message_stop` was received."""
        return self._is_done

    def read_event(self, data: bytes) -> str | None:
        """Add an event; returns its text, or None for a ping. What follows the last one is
        ignored."""
        if self._is_done:
            return ""
        try:
            event = _decode_event(data)
        except (ValueError, RecursionError):
            event = _repaired_event(data)
        match event.type:
            case "content_block_delta":
                return self._add_delta(event)
            case "content_block_start":
                return self._begin(event.index, event.content_block)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop_reason = event.delta.stop_reason
            case "message_stop":
                self._is_done = True
            case "error":
                raise error_in_stream(event.error or ErrorObject())
            case kind:
                return None if kind == "ping" else ""
        return ""

    def read_whole(self, data: bytes) -> str:
        """Add a whole message; returns its text."""
        try:
            message = decoded(_decode_message, data)
        except (ValueError, RecursionError) as exc:
            raise invalid_reply("sent something that is not a message") from exc
        if message.error is not None:
            raise error_in_stream(message.error)
        self._count(message.usage)
        self._stop_reason = message.stop_reason
        self._is_done = True
        text = "".join([self._begin(index, block) for index, block in enumerate(message.content)])
        self._ends_in_whole_call = len(message.content) - 1 in self._calls
        return text

    def taken_reasoning(self) -> str:
        return taken_text(self._reasoning) if self._reasoning else ""

    def reply(self) -> ModelReply:
        """The complete reply. Raises ModelError if the stop reason, the end, or the name of a call
        is missing."""
        if self._stop_reason is None or not self._is_done:
            raise invalid_reply("ended its reply too early")
        calls: list[RequestedCall] = [self._calls[index].requested() for index in sorted(self._calls)]
        if any(not call.name for call in calls):
            raise invalid_reply("asked for a tool call without a name")
        reason = finish_reason_of(self._stop_reason)
        if self._ends_in_whole_call and reason in CUT:
            # A whole message has closed objects: a cut is not visible in them.
            raw = "".join(self._calls[max(self._calls)].arguments)
            calls[-1] = RequestedCall(name=calls[-1].name, arguments={}, malformed=raw)
        usage = _model_usage(self._usage)
        if not self._own or reason.forbids_calls:
            return finished_reply(self._model, self._texts, calls, usage, reason)
        return finished_reply(
            self._model,
            self._texts,
            calls,
            usage,
            reason,
            items_of=lambda _, calls: kept_items(lambda: self._items(calls, reason), call_ids, calls=len(calls)),
        )

    def _items(self, finished: list[RequestedCall], reason: FinishReason) -> ProviderItems | None:
        """All blocks in their order. None if the reply was cut in its thinking, which the provider
        would not take back."""
        if reason is FinishReason.LENGTH and any(block.is_unsigned for block in self._own.values()):
            return None
        calls = dict(zip(sorted(self._calls), finished, strict=True))
        starts = list(self._text_starts.values())
        texts = dict(zip(self._text_starts, [*starts[1:], len(self._texts)], strict=False))
        blocks: list[bytes] = []
        for index in sorted([*calls, *texts, *self._own]):
            if index in calls:
                blocks.append(call_block(self._calls[index].id, calls[index]))
            elif index in self._own:
                blocks.append(self._own[index].encoded())
            elif block := text_block("".join(self._texts[self._text_starts[index] : texts[index]])):
                blocks.append(block)
        return ProviderItems(origin=self._origin, data=b"[" + b",".join(blocks) + b"]")

    def _begin(self, index: int, raw: msgspec.Raw) -> str:
        block = _block_of(raw)
        if block.type == "tool_use":
            call = CallInProgress(block.name or "", block.id)
            # A streamed block begins with an empty input, replaced by the deltas.
            given = bytes(block.input)
            if b"".join(given.split()) != b"{}":
                call.arguments.append(given.decode())
            self._calls[index] = call
        elif block.type == "text":
            self._text_starts[index] = len(self._texts)
            if block.text:
                self._texts.append(block.text)
                return block.text
        elif block.type:
            self._own[index] = OwnBlock(block.type, repaired(bytes(raw)))
            if block.thinking:
                self._reasoning.append(block.thinking)
        return ""

    def _add_delta(self, event: _Event) -> str:
        delta = event.delta
        if delta is None:
            return ""
        if delta.text:
            self._texts.append(delta.text)
            return delta.text
        if delta.partial_json and (call := self._calls.get(event.index)) is not None:
            call.arguments.append(delta.partial_json)
        elif (block := self._own.get(event.index)) is not None:
            self._add_to(block, delta)
        return ""

    def _add_to(self, block: OwnBlock, delta: _Delta) -> None:
        if delta.thinking:
            block.thinking.append(delta.thinking)
            self._reasoning.append(delta.thinking)
        if delta.signature:
            block.signature.append(delta.signature)
        if delta.partial_json:
            block.input.append(delta.partial_json)

    def _count(self, usage: _Usage | None) -> None:
        """Update the counts: those of the last event are cumulative, and may omit earlier ones."""
        if usage is None:
            return
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)


def _repaired_event(data: bytes) -> _Event:
    try:
        return decoded(_decode_event, data)
    except (ValueError, RecursionError) as exc:
        raise invalid_reply("sent an event that is not one of its protocol") from exc


def _block_of(raw: msgspec.Raw) -> _Block:
    try:
        return _decode_block(raw)
    except (ValueError, RecursionError) as exc:
        raise invalid_reply("sent a block that is not one of its protocol") from exc


def _model_usage(usage: _Usage) -> ModelUsage:
    """Adds the cached input tokens, which this API counts separately. It does not count reasoning
    separately."""
    cached = max(0, usage.cache_read_input_tokens or 0)
    written = max(0, usage.cache_creation_input_tokens or 0)
    input_tokens = max(0, usage.input_tokens or 0) + cached + written
    output_tokens = max(0, usage.output_tokens or 0)
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached,
        cache_write_tokens=written,
        estimated=not input_tokens + output_tokens,
    )
