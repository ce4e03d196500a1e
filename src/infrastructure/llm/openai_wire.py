"""Encodes requests for the OpenAI chat completions API. Format:
https://platform.openai.com/docs/api-reference/chat/create."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import assert_never

import msgspec

from application.models.ports import ModelRequest, ToolChoice
from domain.json_value import JsonObject, JsonValue
from domain.model_providers.provider import EchoReasoning
from domain.runs.model_settings import NO_SETTINGS
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
)
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool
from infrastructure.llm.chat_echo import ChatEcho
from infrastructure.llm.chat_items import REASONING, as_it_came, call_ids, without_reasoning
from infrastructure.llm.items_check import sendable_items
from infrastructure.llm.model_families import is_claude
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.wire_cache import DEFAULT_MAX_BYTES, Form, MessageCache, ToolListCache
from infrastructure.llm.wire_content import (
    AUDIO_FORMATS,
    DEFAULT_NAME,
    data_url,
    described_file,
    object_schema,
    readable,
    wire_params,
)
from infrastructure.llm.wire_parameters import appended, chat_parameters, with_reasoning_object

_encode = msgspec.json.Encoder().encode

_PLACEHOLDER = "(not available)"
"""In place of the reasoning of another model. Providers that require reasoning refuse an empty
text."""
_NO_SIGNATURE: JsonObject = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""The documented value for calls that Gemini did not make:
https://ai.google.dev/gemini-api/docs/thought-signatures"""
NEUTRALLY = ChatEcho(reasoning=EchoReasoning.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDialect:
    """What vendors of chat completions differ in.

    - `token_limit_field` bounds the tokens of a reply.
    - `stream_options` asks for the usage of a stream; vendors that report it always may refuse to
      be asked.
    - `short_ids`: ids of calls have nine letters or digits.
    - `tool_choice`: without it, a request that must not call tools has none.
    - `audio_urls`: audio is a data URL.
    - `claude_reasoning`: the effort of Claude is in an object `reasoning`.
    - `ends_without_reason`: replies may have no finish reason.
    """

    token_limit_field: str = "max_tokens"
    stream_options: bool = True
    short_ids: bool = False
    tool_choice: bool = True
    audio_urls: bool = False
    claude_reasoning: bool = False
    ends_without_reason: bool = False


class OpenAIWire:
    """Encodes request bodies; each message is encoded once."""

    def __init__(
        self,
        *,
        takes: frozenset[ModelInput],
        dialect: ChatDialect,
        cache_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._takes = takes
        self._dialect = dialect
        self._token_limit_field = dialect.token_limit_field.encode()
        self._stream = b',"stream":true' + (
            b',"stream_options":{"include_usage":true}' if dialect.stream_options else b""
        )
        self._own_id: Callable[[str], str] = _short_id if dialect.short_ids else str
        self._messages = MessageCache(self._encode_message, max_bytes=cache_bytes)
        self._tools = ToolListCache(_encode_tools)

    def body(self, model_name: str, request: ModelRequest, *, origin: str = "", echo: ChatEcho = NEUTRALLY) -> bytes:
        """Encode the body. The parts that stay equal between turns come first, so that prompt
        caches hit. Items of `origin` go back as `echo` says."""
        messages = self._messages.encoded(
            request.messages,
            origin="" if echo.reasoning is EchoReasoning.NEVER else origin,
            neutral=echo.neutral,
            reasoning_in_loop=echo.reasoning is EchoReasoning.TOOL_LOOP,
        )
        if request.system:
            messages.insert(0, _encode({"role": "system", "content": request.system}))
        parts = [b'{"model":', _encode(model_name)]
        may_call = request.tool_choice is not ToolChoice.NONE
        has_tools = bool(request.tools) and (may_call or self._dialect.tool_choice)
        if has_tools:
            parts += [b',"tools":', self._tools.encoded(request.tools)]
            if not may_call:
                parts.append(b',"tool_choice":"none"')
        parts += [b',"messages":[', b",".join(messages), b"]"]
        if request.max_output_tokens is not None:
            parts.append(b',"%b":%d' % (self._token_limit_field, request.max_output_tokens))
        parts.append(self._stream)
        if request.settings is not None or request.output_schema is not None:
            settings, schema = request.settings or NO_SETTINGS, request.output_schema
            parameters = chat_parameters(settings, has_tools=has_tools, schema=schema)
            if self._dialect.claude_reasoning and is_claude(model_name):
                parameters = with_reasoning_object(parameters)
            parts.append(appended(parameters))
        parts.append(b"}")
        return b"".join(parts)

    def _encode_message(self, message: Message, form: Form, items: ProviderItems | None) -> bytes:
        items = sendable_items(items, call_ids)
        match message.role:
            case Role.SYSTEM:
                entries: list[JsonObject] = [{"role": "system", "content": message.text}]
            case Role.USER:
                entries = [{"role": "user", "content": self._user_content(message.content)}]
            case Role.ASSISTANT:
                if items is not None:
                    write = without_reasoning if form is Form.WITHOUT_REASONING else as_it_came
                    return write(items, message.tool_uses)
                entries = _assistant_entries(message, form, self._own_id)
            case Role.TOOL:
                entries = self._tool_entries(message.tool_results, [] if items is None else call_ids(items))
            case _:
                assert_never(message.role)
        return b",".join([_encode(entry) for entry in entries])

    def _user_content(self, content: tuple[Content, ...]) -> JsonValue:
        if len(content) == 1 and isinstance(content[0], TextContent):
            return content[0].text
        parts: list[JsonValue] = []
        for part in content:
            if isinstance(part, TextContent):
                parts.append(_text_part(part.text))
            elif isinstance(part, ImageContent | FileContent):
                attached = self._attached(part)
                parts.append(_text_part(attached) if isinstance(attached, str) else attached)
        return parts

    def _attached(self, part: ImageContent | FileContent) -> JsonObject | str:
        """The part for a message of the user, or text in its place."""
        match readable(part, self._takes):
            case str(text):
                return text
            case ImageContent() as image:
                return {"type": "image_url", "image_url": {"url": data_url(image)}}
            case FileContent(data=None) as file:  # this API takes no addresses of files
                return described_file(file)
            case FileContent() as file if file.media_type in AUDIO_FORMATS:
                data = data_url(file) if self._dialect.audio_urls else file.data
                audio: JsonObject = {"data": data, "format": AUDIO_FORMATS[file.media_type]}
                return {"type": "input_audio", "input_audio": audio}
            case FileContent() as file:
                document: JsonObject = {"filename": file.name or DEFAULT_NAME, "file_data": data_url(file)}
                return {"type": "file", "file": document}

    def _tool_entries(self, results: tuple[ToolResultContent, ...], ids: list[str | None]) -> list[JsonObject]:
        """One entry per result, with the provider's `ids` of their calls if it has any. Results
        contain only text, so a user message with all images and files follows, each named after its
        tool."""
        entries: list[JsonObject] = []
        following: list[JsonValue] = []
        for result, call_id in zip_longest(results, ids[: len(results)]):
            attached = [self._attached(part) for part in result.attachments]
            texts = [part for part in (result.result, *attached) if isinstance(part, str) and part]
            parts = [part for part in attached if not isinstance(part, str)]
            if parts:
                what = "Files" if result.files else "Images"
                following += [_text_part(f"{what} returned by {result.tool_name} ({result.tool_id}):"), *parts]
            id_of_call = call_id or self._own_id(result.tool_id)
            entries.append({"role": "tool", "tool_call_id": id_of_call, "content": "\n".join(texts)})
        if following:
            entries.append({"role": "user", "content": following})
        return entries


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _assistant_entries(message: Message, form: Form, own_id: Callable[[str], str]) -> list[JsonObject]:
    text = message.text
    uses = message.tool_uses
    if not text and not uses:
        return []
    entry: JsonObject = {"role": "assistant", "content": text or None}
    if form is Form.WITH_PLACEHOLDER:
        entry[REASONING] = _PLACEHOLDER
    if uses:
        calls = [_tool_call(use, own_id(use.id)) for use in uses]
        if form is Form.WITH_SIGNATURE:
            calls[0]["extra_content"] = _NO_SIGNATURE
        entry["tool_calls"] = [*calls]
    return [entry]


def _tool_call(use: ToolUse, call_id: str) -> JsonObject:
    arguments = _encode(wire_params(use)).decode()
    return {"id": call_id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _short_id(call_id: str) -> str:
    return blake2b(call_id.encode(), digest_size=5).hexdigest()[:9]


def _encode_tools(tools: tuple[Tool, ...]) -> bytes:
    return _encode(
        [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": object_schema(tool.parameters),
                },
            }
            for tool in tools
        ]
    )
