"""Encodes requests for the Anthropic messages API. Format:
https://docs.anthropic.com/en/api/messages. Prompt caching:
https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching (at most four breakpoints; each
caches everything before it, in the order tools, system, messages)."""

from dataclasses import replace

import msgspec

from application.models.ports import ModelRequest, ToolChoice
from domain.json_value import JsonObject, JsonValue
from domain.runs.model_settings import NO_SETTINGS, CacheTtl, ModelSettings
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
from infrastructure.llm.anthropic_items import call_ids
from infrastructure.llm.items_check import sendable_items
from infrastructure.llm.model_families import thinking_of
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.wire_cache import DEFAULT_MAX_BYTES, Form, MessageCache, ToolListCache
from infrastructure.llm.wire_content import object_schema, readable, wire_params
from infrastructure.llm.wire_parameters import appended, messages_parameters

_encode = msgspec.json.Encoder().encode
_LAST_BLOCK_END = b"}]}"
_MARKS = {
    ttl: b',"cache_control":{"type":"ephemeral"%b}' % (b"" if ttl is None else b',"ttl":"%b"' % ttl.value.encode())
    for ttl in (None, *CacheTtl)
}
"""Ends of blocks up to which the provider caches."""
_VERTEX_START = b'{"anthropic_version":"vertex-2023-10-16"'
_USER_TURN = b'{"role":"user",'


class AnthropicWire:
    """Encodes request bodies; each message is encoded once. `default_max_tokens` is sent for
    requests without a limit, because the API requires one. On Vertex AI the model is in the
    address, and the version of the API in the body."""

    def __init__(
        self,
        *,
        takes: frozenset[ModelInput],
        default_max_tokens: int,
        on_vertex: bool = False,
        cache_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._takes = takes
        self._on_vertex = on_vertex
        self._default_max_tokens = default_max_tokens
        self._messages = MessageCache(self._encode_message, max_bytes=cache_bytes)
        self._tools = ToolListCache(_encode_tools)

    def body(self, model_name: str, request: ModelRequest, *, origin: str = "") -> bytes:
        """Encode the body. Items of `origin` go back as they came."""
        settings = request.settings or NO_SETTINGS
        max_tokens = request.max_output_tokens or self._default_max_tokens + (settings.thinking_budget or 0)
        mark = _MARKS[settings.cache_ttl]
        start = _VERTEX_START if self._on_vertex else b'{"model":%b' % _encode(model_name)
        parts = [start, b',"max_tokens":%d' % max_tokens]
        if request.tools:
            parts += [b',"tools":', self._tools.encoded(request.tools), mark, b"}]"]
            parts.append(_tool_choice(request.tool_choice, settings.parallel_tool_calls))
        if request.system:
            parts += [b',"system":[{"type":"text","text":', _encode(request.system), mark, b"}]"]
        messages = self._encoded(request.messages, origin)
        _set_breakpoints(messages, mark)
        parts += [b',"messages":[', b",".join(messages), b"]"]
        parts.append(b',"stream":true')
        if request.settings is not None or request.reasoning_summary or request.output_schema is not None:
            parts.append(appended(_parameters(model_name, request, settings, max_tokens, origin)))
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
        ids: list[str] = []
        items = sendable_items(items, call_ids)
        if items is not None:
            if message.role is Role.ASSISTANT:
                return b'{"role":"assistant","content":%b}' % items.data
            ids = call_ids(items)
        blocks = [block for part in message.content if (block := self._block(part)) is not None]
        for block, call_id in zip(blocks, ids, strict=False):
            block["tool_use_id"] = call_id
        if not blocks:
            return b""
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        return _encode({"role": role, "content": blocks})

    def _block(self, part: Content) -> JsonObject | None:
        match part:
            case TextContent():
                # The API rejects text without visible characters.
                return {"type": "text", "text": part.text} if part.text.strip() else None
            case ImageContent() | FileContent():
                return self._attached(part)
            case ToolUse():
                return {"type": "tool_use", "id": part.id, "name": part.name, "input": wire_params(part)}
            case ToolResultContent():
                return self._tool_result(part)

    def _attached(self, part: ImageContent | FileContent) -> JsonObject:
        match readable(part, self._takes):
            case str(text):
                return {"type": "text", "text": text}
            case ImageContent() as image:
                return {"type": "image", "source": _source(image)}
            case FileContent() as file:
                block: JsonObject = {"type": "document", "source": _source(file)}
                return block if file.name is None else {**block, "title": file.name}

    def _tool_result(self, result: ToolResultContent) -> JsonObject:
        content: list[JsonValue] = []
        if result.result.strip():
            content.append({"type": "text", "text": result.result})
        content += [self._attached(part) for part in result.attachments]
        block: JsonObject = {"type": "tool_result", "tool_use_id": result.tool_id}
        if content:
            block["content"] = content
        if result.is_error:
            block["is_error"] = True
        return block


def _source(part: ImageContent | FileContent) -> JsonObject:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def _without_end_space(message: Message) -> Message:
    *before, last = message.content
    if not isinstance(last, TextContent):
        return message
    return replace(message, content=(*before, TextContent(text=last.text.rstrip())))


def _set_breakpoints(messages: list[bytes], mark: bytes) -> None:
    """Mark the ends of the last two user turns: the newest for the next request, and the one
    before, which the previous request cached. A turn of many calls would move the latter out of the
    provider's look-back."""
    marked = 0
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].startswith(_USER_TURN):
            messages[index] = messages[index].removesuffix(_LAST_BLOCK_END) + mark + _LAST_BLOCK_END
            marked += 1
            if marked == 2:
                return


def _tool_choice(choice: ToolChoice, parallel: bool | None) -> bytes:
    if choice is ToolChoice.NONE:
        return b',"tool_choice":{"type":"none"}'
    if parallel is None:
        return b""
    return b',"tool_choice":{"type":"auto","disable_parallel_tool_use":%b}' % (b"false" if parallel else b"true")


def _parameters(
    model_name: str, request: ModelRequest, settings: ModelSettings, max_tokens: int, origin: str
) -> JsonObject:
    return messages_parameters(
        settings,
        thinking_of(model_name),
        max_tokens=max_tokens,
        summary=request.reasoning_summary,
        may_think=settings.thinking_budget is None or _all_think(request.messages, origin),
        schema=request.output_schema,
    )


def _all_think(messages: tuple[Message, ...], origin: str) -> bool:
    """Whether each turn of the tool loop begins with thinking of this model: with a budget the API
    refuses others."""
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is Role.ASSISTANT:
            items = message.items
            if items is None or items.origin != origin or sendable_items(items, call_ids) is None:
                return False
    return True


def _encode_tools(tools: tuple[Tool, ...]) -> bytes:
    """The list without the end of the last tool, where the mark is put."""
    entries: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "input_schema": object_schema(tool.parameters)}
        for tool in tools
    ]
    return _encode(entries).removesuffix(b"}]")
