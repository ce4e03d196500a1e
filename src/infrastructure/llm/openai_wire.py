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
from domain.threads.message import (
    Content,
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
from infrastructure.llm.wire_cache import DEFAULT_MAX_BYTES, Form, MessageCache, ToolListCache
from infrastructure.llm.wire_content import described_image, object_schema, wire_params
from infrastructure.llm.wire_parameters import appended, chat_parameters

_encode = msgspec.json.Encoder().encode

_PLACEHOLDER = "(not available)"
"""In place of the reasoning of another model. Providers that require reasoning refuse an empty text."""
_NO_SIGNATURE: JsonObject = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""The documented value for calls that Gemini did not make: https://ai.google.dev/gemini-api/docs/thought-signatures"""
NEUTRALLY = ChatEcho(reasoning=EchoReasoning.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDialect:
    """What vendors of chat completions differ in.

    - `token_limit_field` bounds the tokens of a reply.
    - `stream_options` asks for the usage of a stream; vendors that report it always may refuse to be asked.
    - `short_ids`: ids of calls have nine letters or digits.
    """

    token_limit_field: str = "max_tokens"
    stream_options: bool = True
    short_ids: bool = False


class OpenAIWire:
    """Encodes request bodies; each message is encoded once."""

    def __init__(
        self,
        *,
        streaming: bool,
        image_input: bool,
        dialect: ChatDialect,
        cache_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._streaming = streaming
        self._image_input = image_input
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
        if request.tools:
            parts += [b',"tools":', self._tools.encoded(request.tools)]
            if request.tool_choice is ToolChoice.NONE:
                parts.append(b',"tool_choice":"none"')
        parts += [b',"messages":[', b",".join(messages), b"]"]
        if request.max_output_tokens is not None:
            parts.append(b',"%b":%d' % (self._token_limit_field, request.max_output_tokens))
        if self._streaming:
            parts.append(self._stream)
        if request.settings is not None:
            parts.append(appended(chat_parameters(request.settings, has_tools=bool(request.tools))))
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
                parts.append({"type": "text", "text": part.text})
            elif isinstance(part, ImageContent):
                parts.append(self._image(part))
        return parts

    def _image(self, image: ImageContent) -> JsonValue:
        if not self._image_input:
            return {"type": "text", "text": described_image(image)}
        url = image.url if image.url is not None else f"data:{image.media_type};base64,{image.data}"
        return {"type": "image_url", "image_url": {"url": url}}

    def _tool_entries(self, results: tuple[ToolResultContent, ...], ids: list[str | None]) -> list[JsonObject]:
        """One entry per result, with the provider's `ids` of their calls if it has any. Results contain
        only text, so a user message with all images follows, each named after its tool."""
        entries: list[JsonObject] = []
        pictures: list[JsonValue] = []
        for result, call_id in zip_longest(results, ids[: len(results)]):
            text = result.result
            if result.images and self._image_input:
                pictures.append({"type": "text", "text": f"Images returned by {result.tool_name} ({result.tool_id}):"})
                pictures += [self._image(image) for image in result.images]
            else:
                text = "\n".join([part for part in (text, *map(described_image, result.images)) if part])
            entries.append({"role": "tool", "tool_call_id": call_id or self._own_id(result.tool_id), "content": text})
        if pictures:
            entries.append({"role": "user", "content": pictures})
        return entries


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
