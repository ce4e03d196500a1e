"""Encodes requests for the Anthropic messages API. Format:
https://docs.anthropic.com/en/api/messages. Prompt caching:
https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching (at most four breakpoints; each
caches everything before it, in the order tools, system, messages)."""

from dataclasses import replace

import msgspec

from application.models.ports import ModelRequest, ToolChoice
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import ImageContent, Message, Role, TextContent, ToolResultContent, ToolUse
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool
from infrastructure.llm.anthropic_items import call_ids
from infrastructure.llm.wire_cache import DEFAULT_MAX_BYTES, Form, MessageCache, ToolListCache
from infrastructure.llm.wire_content import described_image, object_schema, wire_params

_encode = msgspec.json.Encoder().encode
_CACHE_CONTROL: JsonObject = {"type": "ephemeral"}
_LAST_BLOCK_END = b"}]}"
_LAST_BLOCK_END_CACHED = b',"cache_control":{"type":"ephemeral"}}]}'
_USER_TURN = b'{"role":"user",'


class AnthropicWire:
    """Encodes request bodies; each message is encoded once. `default_max_tokens` is sent for
    requests without a limit, because the API requires one."""

    def __init__(
        self,
        *,
        streaming: bool,
        image_input: bool,
        default_max_tokens: int,
        cache_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._streaming = streaming
        self._image_input = image_input
        self._default_max_tokens = default_max_tokens
        self._messages = MessageCache(self._encode_message, max_bytes=cache_bytes)
        self._tools = ToolListCache(_encode_tools)

    def body(self, model_name: str, request: ModelRequest, *, origin: str = "") -> bytes:
        """Encode the body. Items of `origin` go back as they came."""
        max_tokens = request.max_output_tokens or self._default_max_tokens
        parts = [b'{"model":', _encode(model_name), b',"max_tokens":%d' % max_tokens]
        if request.tools:
            parts += [b',"tools":', self._tools.encoded(request.tools)]
            if request.tool_choice is ToolChoice.NONE:
                parts.append(b',"tool_choice":{"type":"none"}')
        if request.system:
            system: JsonObject = {"type": "text", "text": request.system, "cache_control": _CACHE_CONTROL}
            parts += [b',"system":[', _encode(system), b"]"]
        messages = self._encoded(request.messages, origin)
        _set_breakpoints(messages)
        parts += [b',"messages":[', b",".join(messages), b"]"]
        if self._streaming:
            parts.append(b',"stream":true')
        parts.append(b"}")
        return b"".join(parts)

    def _encoded(self, messages: tuple[Message, ...], origin: str) -> list[bytes]:
        """Encode all messages. The API rejects trailing whitespace in a final assistant message (a
        paused reply) that is not as it came."""
        last = messages[-1] if messages else None
        if last is None or last.role is not Role.ASSISTANT or (last.items is not None and last.items.origin == origin):
            return self._messages.encoded(messages, origin=origin)
        paused = self._encode_message(_without_end_space(last), Form.NEUTRAL, None)
        return [*self._messages.encoded(messages[:-1], origin=origin), *([paused] if paused else [])]

    def _encode_message(self, message: Message, form: Form, items: ProviderItems | None) -> bytes:
        """`{"role": …, "content": [blocks]}`; always a list, so that its end can be a breakpoint.
        Empty without blocks."""
        ids: list[str | None] = []
        if items is not None:
            if message.role is Role.ASSISTANT:
                return b'{"role":"assistant","content":%b}' % items.data
            ids = call_ids(items)
        blocks = [block for part in message.content if (block := self._block(part)) is not None]
        for block, call_id in zip(blocks, ids, strict=False):
            block["tool_use_id"] = call_id or block["tool_use_id"]
        if not blocks:
            return b""
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        return _encode({"role": role, "content": blocks})

    def _block(self, part: TextContent | ImageContent | ToolUse | ToolResultContent) -> JsonObject | None:
        match part:
            case TextContent():
                # The API rejects text without visible characters.
                return {"type": "text", "text": part.text} if part.text.strip() else None
            case ImageContent():
                return self._image(part)
            case ToolUse():
                return {"type": "tool_use", "id": part.id, "name": part.name, "input": wire_params(part)}
            case ToolResultContent():
                return self._tool_result(part)

    def _image(self, image: ImageContent) -> JsonObject:
        if not self._image_input:
            return {"type": "text", "text": described_image(image)}
        if image.url is not None:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}

    def _tool_result(self, result: ToolResultContent) -> JsonObject:
        content: list[JsonValue] = []
        if result.result.strip():
            content.append({"type": "text", "text": result.result})
        content += [self._image(image) for image in result.images]
        block: JsonObject = {"type": "tool_result", "tool_use_id": result.tool_id}
        if content:
            block["content"] = content
        if result.is_error:
            block["is_error"] = True
        return block


def _without_end_space(message: Message) -> Message:
    *before, last = message.content
    if not isinstance(last, TextContent):
        return message
    return replace(message, content=(*before, TextContent(text=last.text.rstrip())))


def _set_breakpoints(messages: list[bytes]) -> None:
    """Mark the ends of the last two user turns: the newest for the next request, and the one
    before, which the previous request cached. A turn of many calls would move the latter out of the
    provider's look-back."""
    marked = 0
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].startswith(_USER_TURN):
            messages[index] = messages[index].removesuffix(_LAST_BLOCK_END) + _LAST_BLOCK_END_CACHED
            marked += 1
            if marked == 2:
                return


def _encode_tools(tools: tuple[Tool, ...]) -> bytes:
    entries: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "input_schema": object_schema(tool.parameters)}
        for tool in tools
    ]
    entries[-1]["cache_control"] = _CACHE_CONTROL
    return _encode(entries)
