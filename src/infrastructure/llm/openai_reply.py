"""Parses replies of the OpenAI chat completions API, from chunks or whole. Compatible servers omit
fields, so every field is optional and checked at the end. Fields that are not of the API are kept:
some providers need them back. Format:
https://platform.openai.com/docs/api-reference/chat/streaming."""

from typing import Any

import msgspec

from application.models.ports import ModelReply
from domain.json_value import JsonObject
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.chat_items import REASONING_TEXTS, call_ids, chat_items, shown_reasoning
from infrastructure.llm.items_check import kept_items
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, invalid_reply
from infrastructure.llm.repaired_json import decoded
from infrastructure.llm.reply_parts import CallInProgress, finish_reason_of, finished_reply, taken_text
from infrastructure.llm.streamed_fields import StreamedFields

_NOT_READ = msgspec.Raw()


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    type: msgspec.Raw = _NOT_READ


class _ContentPart(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of the API, and those in which most vendors show reasoning."""

    content: str | list[_ContentPart] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    role: msgspec.Raw = _NOT_READ
    function_call: msgspec.Raw = _NOT_READ
    annotations: msgspec.Raw = _NOT_READ
    audio: msgspec.Raw = _NOT_READ
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    padding: msgspec.Raw = _NOT_READ


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    """DeepSeek and Kimi name cached tokens differently."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: ErrorObject | str | None = None


class _OpenChoice(msgspec.Struct, gc=False):
    """A choice whose message has fields that are not of the API."""

    index: int = 0
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    finish_reason: str | None = None


class _OpenCompletion(msgspec.Struct, gc=False):
    choices: list[_OpenChoice] | None = None
    usage: _Usage | None = None
    error: ErrorObject | str | None = None


_decode = msgspec.json.Decoder(_Completion).decode
_decode_open = msgspec.json.Decoder(_OpenCompletion).decode
_encode = msgspec.json.Encoder().encode
_KNOWN = frozenset((*_Message.__struct_fields__, *_ToolCall.__struct_fields__)) - frozenset(REASONING_TEXTS)
_READ_OF_MESSAGE = ("content", "refusal")
_READ_OF_CALL = ("index", "id", "function")


class OpenAIReply:
    """Accumulates one reply. `model` is `PROVIDER:NAME`. With an `origin`, a reply with fields that
    are not of the API has items. `ends_without_reason`: a complete reply may have no finish
    reason."""

    def __init__(self, model: str, *, origin: str = "", ends_without_reason: bool = False) -> None:
        self._model = model
        self._ends_without_reason = ends_without_reason
        self._origin = origin
        self._texts: list[str] = []
        self._calls: list[CallInProgress] = []
        self._slots: dict[int, CallInProgress] = {}
        self._fields: StreamedFields | None = None
        self._is_open = False
        self._reasoning: list[str] = []
        self._usage = ModelUsage(estimated=True)
        self._finish_reason: str | None = None
        self._is_refusal = False
        self._is_done = False

    ignored_types: frozenset[bytes] = frozenset()

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` was received."""
        return self._is_done

    def read_event(self, data: bytes) -> str | None:
        """Add a chunk. What follows the last one is ignored."""
        if self._is_done or data == b"[DONE]":
            self._is_done = True
            return ""
        return self._read(data)

    def read_whole(self, data: bytes) -> str:
        text = self._read(data)
        self._is_done = True
        return text

    def taken_reasoning(self) -> str:
        return taken_text(self._reasoning) if self._reasoning else ""

    def reply(self) -> ModelReply:
        """The complete reply. Raises ModelError if the finish reason or the name of a call is
        missing."""
        if self._finish_reason is None and self._ends_without_reason and self._is_done and (self._texts or self._calls):
            self._finish_reason = "tool_calls" if self._calls else "stop"
        if self._finish_reason is None:
            raise invalid_reply("ended its reply too early")
        if any(not call.name for call in self._calls):
            raise invalid_reply("asked for a tool call without a name")
        reason = finish_reason_of(self._finish_reason)
        if self._is_refusal and reason is not FinishReason.CONTENT_FILTER:
            reason = FinishReason.REFUSAL  # the API reports `stop` for refusals
        calls = [call.requested() for call in self._calls]
        fields = self._fields or (StreamedFields() if self._is_open else None)
        if fields is None or not self._origin or reason.forbids_calls:
            return finished_reply(self._model, self._texts, calls, self._usage, reason)
        return finished_reply(
            self._model,
            self._texts,
            calls,
            self._usage,
            reason,
            items_of=lambda text, calls: kept_items(
                lambda: chat_items(self._origin, text, calls, fields.finished(), self._calls),
                call_ids,
                calls=len(calls),
            ),
        )

    def _read(self, data: bytes) -> str:
        """A message with other fields than those of `_Message` takes a slower way, and so do those
        after it."""
        if self._is_open:
            return self._read_open(data)
        try:
            completion = _decode(data)
        except (ValueError, RecursionError):  # decided by the other way
            self._is_open = True
            return self._read_open(data)
        if completion.error is not None:
            raise error_in_stream(completion.error)
        if completion.usage is not None:
            self._usage = _model_usage(completion.usage)
        added = ""
        for choice in completion.choices or ():
            if choice.index == 0:
                added += self._read_choice(choice)
        return added

    def _read_choice(self, choice: _Choice) -> str:
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        message = choice.delta or choice.message
        if message is None:
            return ""
        if message.refusal:
            self._is_refusal = True
        if message.reasoning_content or message.reasoning or message.reasoning_text:
            self._read_own({name: getattr(message, name) for name in REASONING_TEXTS})
        text = _text_of(message)
        if text:
            self._texts.append(text)
        for position, call in enumerate(message.tool_calls or ()):
            self._read_call(call, position)
        return text

    def _read_call(self, call: _ToolCall, position: int) -> CallInProgress:
        """Chunks of a call share an index. Some servers send index 0 or none for every call; a new
        id separates them."""
        index = call.index if call.index is not None else position
        slot = self._slots.get(index)
        if slot is None or (call.id and slot.id and call.id != slot.id):
            slot = CallInProgress(call_id=call.id)
            self._slots[index] = slot
            self._calls.append(slot)
        if call.id and slot.id is None:
            slot.id = call.id
        if call.function is not None:
            if call.function.name and not slot.name:
                slot.name = call.function.name
            if call.function.arguments:
                slot.arguments.append(call.function.arguments)
        return slot

    def _read_own(self, own: JsonObject, *, is_whole: bool = False) -> None:
        """Add fields that are not of the API."""
        if self._fields is None:
            self._fields = StreamedFields()
        (self._fields.add_whole if is_whole else self._fields.add)(own)
        self._reasoning += filter(None, [shown_reasoning(own)])

    def _read_open(self, data: bytes) -> str:
        try:
            completion = decoded(_decode_open, data)
            if completion.error is not None:
                raise error_in_stream(completion.error)
            if completion.usage is not None:
                self._usage = _model_usage(completion.usage)
            choices = [choice for choice in completion.choices or () if choice.index == 0]
            return "".join(map(self._read_open_choice, choices))
        except (ValueError, RecursionError) as exc:
            raise invalid_reply("sent something that is not a chat completion") from exc

    def _read_open_choice(self, choice: _OpenChoice) -> str:
        fields: JsonObject = choice.delta or choice.message or {}
        calls = fields.pop("tool_calls", None)
        known, own = _parted(fields, _READ_OF_MESSAGE)
        message = msgspec.convert(known, _Message)
        if own:
            self._read_own(own, is_whole=choice.delta is None)
        text = self._read_choice(_Choice(finish_reason=choice.finish_reason, delta=message))
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                raise msgspec.ValidationError("a tool call is not an object")
            known, own = _parted(call, _READ_OF_CALL)
            slot = self._read_call(msgspec.convert(_with_text_arguments(known), _ToolCall), position)
            if own:
                slot.own_fields().add(own)
        return text


def _parted(fields: JsonObject, read: tuple[str, ...]) -> tuple[JsonObject, JsonObject]:
    """The fields that are read here, and those that are not of the API."""
    own: JsonObject = {name: value for name, value in fields.items() if name not in _KNOWN}
    return {name: fields[name] for name in read if name in fields}, own


def _with_text_arguments(call: JsonObject) -> JsonObject:
    """Some servers send arguments as an object instead of as its text."""
    function = call.get("function")
    if not isinstance(function, dict) or isinstance(function.get("arguments"), str | None):
        return call
    return {**call, "function": {**function, "arguments": _encode(function["arguments"]).decode()}}


def _text_of(message: _Message) -> str:
    content = message.content
    if isinstance(content, list):
        content = "".join([part.text or "" for part in content if part.type == "text"])
    return (content or "") + (message.refusal or "")


def _model_usage(usage: _Usage) -> ModelUsage:
    """Some servers do not count the reasoning as output; only their total has it."""
    prompt = usage.prompt_tokens_details or _PromptDetails()
    details = usage.completion_tokens_details or _CompletionDetails()
    input_tokens = max(0, usage.prompt_tokens or 0)
    stated = max(0, usage.completion_tokens or 0)
    output_tokens = max(stated, (usage.total_tokens or 0) - input_tokens)
    cached_tokens = max(0, prompt.cached_tokens or usage.prompt_cache_hit_tokens or usage.cached_tokens or 0)
    cached_tokens = min(cached_tokens, input_tokens)
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cache_write_tokens=min(max(0, prompt.cache_write_tokens or 0), input_tokens - cached_tokens),
        reasoning_tokens=min(max(details.reasoning_tokens or 0, output_tokens - stated), output_tokens),
        estimated=not input_tokens + output_tokens,
    )
