"""Parses replies of the Anthropic messages API, from events or whole. Unknown events and blocks are
ignored, as the format requires. Format:
https://docs.anthropic.com/en/docs/build-with-claude/streaming."""

import msgspec

from application.models.ports import ModelReply, RequestedCall
from domain.runs.usage import ModelUsage
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, invalid_reply
from infrastructure.llm.reply_parts import CUT, CallInProgress, finish_reason_of, finished_reply


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Delta(msgspec.Struct):
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    type: str = ""
    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: ErrorObject | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: ErrorObject | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class AnthropicReply:
    """Accumulates one reply. `model` is `PROVIDER:NAME`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._texts: list[str] = []
        self._calls: dict[int, CallInProgress] = {}
        self._usage = _Usage()
        self._stop_reason: str | None = None
        self._is_done = False
        self._ends_in_whole_call = False

    @property
    def is_done(self) -> bool:
        """Whether `message_stop` was received."""
        return self._is_done

    def read_event(self, data: bytes) -> str | None:
        """Add an event; returns its text, or None for a ping."""
        try:
            event = _decode_event(data)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise invalid_reply("sent an event that is not one of its protocol") from exc
        match event.type:
            case "content_block_delta":
                return self._add_delta(event)
            case "content_block_start" if event.content_block is not None:
                return self._begin(event.index, event.content_block)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop_reason = event.delta.stop_reason
            case "message_stop":
                self._is_done = True
            case "ping":
                return None
            case "error":
                raise error_in_stream(event.error or ErrorObject())
            case _:
                pass
        return ""

    def read_whole(self, data: bytes) -> str:
        """Add a whole message; returns its text."""
        try:
            message = _decode_message(data)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise invalid_reply("sent something that is not a message") from exc
        if message.error is not None:
            raise error_in_stream(message.error)
        self._count(message.usage)
        self._stop_reason = message.stop_reason
        self._is_done = True
        self._ends_in_whole_call = bool(message.content) and message.content[-1].type == "tool_use"
        return "".join([self._begin(index, block) for index, block in enumerate(message.content)])

    def taken_reasoning(self) -> str:
        return ""

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
        return finished_reply(self._model, self._texts, calls, _model_usage(self._usage), reason)

    def _begin(self, index: int, block: _Block) -> str:
        if block.type == "tool_use":
            call = CallInProgress(block.name or "")
            # A streamed block begins with an empty input, replaced by the deltas.
            given = bytes(block.input)
            if b"".join(given.split()) != b"{}":
                call.arguments.append(given.decode())
            self._calls[index] = call
        elif block.type == "text" and block.text:
            self._texts.append(block.text)
            return block.text
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
        return ""

    def _count(self, usage: _Usage | None) -> None:
        """Update the counts: those of the last event are cumulative, and may omit earlier ones."""
        if usage is None:
            return
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)


def _model_usage(usage: _Usage) -> ModelUsage:
    """Adds the cached input tokens, which this API counts separately."""
    cached = max(0, usage.cache_read_input_tokens or 0)
    written = max(0, usage.cache_creation_input_tokens or 0)
    return ModelUsage(
        input_tokens=max(0, usage.input_tokens or 0) + cached + written,
        output_tokens=max(0, usage.output_tokens or 0),
        cached_tokens=cached,
        cache_write_tokens=written,
    )
