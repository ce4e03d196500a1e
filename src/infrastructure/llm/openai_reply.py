"""Parses replies of the OpenAI chat completions API, from chunks or whole. Compatible servers omit
fields, so every field is optional and checked at the end. Format:
https://platform.openai.com/docs/api-reference/chat/streaming."""

import msgspec

from application.models.ports import ModelReply
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, invalid_reply
from infrastructure.llm.reply_parts import CallInProgress, finish_reason_of, finished_reply


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _ContentPart(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_ContentPart] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: ErrorObject | str | None = None


_decode = msgspec.json.Decoder(_Completion).decode


class OpenAIReply:
    """Accumulates one reply. `model` is `PROVIDER:NAME`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._texts: list[str] = []
        self._calls: list[CallInProgress] = []
        self._slots: dict[int, CallInProgress] = {}
        self._usage = ModelUsage()
        self._finish_reason: str | None = None
        self._is_refusal = False
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` was received."""
        return self._is_done

    def read_event(self, data: bytes) -> str | None:
        if data == b"[DONE]":
            self._is_done = True
            return ""
        return self._read(data)

    def read_whole(self, data: bytes) -> str:
        return self._read(data)

    def taken_reasoning(self) -> str:
        return ""

    def reply(self) -> ModelReply:
        """The complete reply. Raises ModelError if the finish reason or the name of a call is
        missing."""
        if self._finish_reason is None:
            raise invalid_reply("ended its reply too early")
        if any(not call.name for call in self._calls):
            raise invalid_reply("asked for a tool call without a name")
        reason = finish_reason_of(self._finish_reason)
        if self._is_refusal and reason is not FinishReason.CONTENT_FILTER:
            reason = FinishReason.REFUSAL  # the API reports `stop` for refusals
        calls = [call.requested() for call in self._calls]
        return finished_reply(self._model, self._texts, calls, self._usage, reason)

    def _read(self, data: bytes) -> str:
        try:
            completion = _decode(data)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise invalid_reply("sent something that is not a chat completion") from exc
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
        text = _text_of(message)
        if text:
            self._texts.append(text)
        for position, call in enumerate(message.tool_calls or ()):
            self._read_call(call, position)
        return text

    def _read_call(self, call: _ToolCall, position: int) -> None:
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


def _text_of(message: _Message) -> str:
    content = message.content
    if isinstance(content, list):
        content = "".join([part.text or "" for part in content if part.type == "text"])
    return (content or "") + (message.refusal or "")


def _model_usage(usage: _Usage) -> ModelUsage:
    details = usage.prompt_tokens_details
    input_tokens = max(0, usage.prompt_tokens or 0)
    cached_tokens = max(0, (details.cached_tokens if details is not None else None) or 0)
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=max(0, usage.completion_tokens or 0),
        cached_tokens=min(cached_tokens, input_tokens),
    )
