"""Encodes requests for the OpenAI Responses API. Format:
https://platform.openai.com/docs/api-reference/responses/create."""

from itertools import zip_longest
from typing import assert_never

import msgspec

from application.models.ports import ModelRequest, ToolChoice
from domain.json_value import JsonObject, JsonValue
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
from infrastructure.llm.items_check import distinct_ids, sendable_items
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.wire_cache import DEFAULT_MAX_BYTES, Form, MessageCache, ToolListCache
from infrastructure.llm.wire_content import DEFAULT_NAME, data_url, object_schema, readable, wire_params
from infrastructure.llm.wire_parameters import appended, responses_parameters

_encode = msgspec.json.Encoder().encode


class ResponsesWire:
    """Encodes request bodies; each message is encoded once. Nothing is stored at the provider."""

    def __init__(self, *, takes: frozenset[ModelInput], cache_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._takes = takes
        self._messages = MessageCache(self._encode_message, max_bytes=cache_bytes)
        self._tools = ToolListCache(_encode_tools)

    def body(
        self,
        model_name: str,
        request: ModelRequest,
        *,
        origin: str = "",
        encrypted_reasoning: bool = True,
        summary: bool = True,
    ) -> bytes:
        """Encode the body. The parts that stay equal between turns come first, so that prompt
        caches hit. Items of `origin` go back as they came. `encrypted_reasoning` asks for the
        reasoning in a form that can be sent back. `summary`: the agent's wish for summaries is
        sent."""
        parts = [b'{"model":', _encode(model_name)]
        if request.system:
            parts += [b',"instructions":', _encode(request.system)]
        if request.tools:
            parts += [b',"tools":', self._tools.encoded(request.tools)]
            if request.tool_choice is ToolChoice.NONE:
                parts.append(b',"tool_choice":"none"')
        parts += [b',"input":[', b",".join(self._messages.encoded(request.messages, origin=origin)), b"]"]
        if request.max_output_tokens is not None:
            parts.append(b',"max_output_tokens":%d' % request.max_output_tokens)
        summary = summary and request.reasoning_summary
        if summary or request.settings is not None or request.output_schema is not None:
            parameters = responses_parameters(
                request.settings or NO_SETTINGS,
                has_tools=bool(request.tools),
                summary=summary,
                schema=request.output_schema,
            )
            parts.append(appended(parameters))
        if encrypted_reasoning:
            parts.append(b',"include":["reasoning.encrypted_content"]')
        if request.messages:
            # All turns of a thread share their beginning; the key sends them to the same cache.
            parts += [b',"prompt_cache_key":', _encode(request.messages[-1].thread_id)]
        parts.append(b',"store":false,"stream":true}')
        return b"".join(parts)

    def _encode_message(self, message: Message, form: Form, items: ProviderItems | None) -> bytes:
        items = sendable_items(items, call_ids)
        if items is not None and message.role is Role.ASSISTANT:
            return items.data.strip()[1:-1]  # a JSON array, in an array
        match message.role:
            case Role.SYSTEM:
                entries: list[JsonObject] = [{"role": "system", "content": message.text}]
            case Role.USER:
                entries = [{"role": "user", "content": self._user_content(message.content)}]
            case Role.ASSISTANT:
                entries = _assistant_items(message)
            case Role.TOOL:
                ids = [] if items is None else call_ids(items)
                entries = [
                    self._result_item(result, call_id or result.tool_id)
                    for result, call_id in zip_longest(message.tool_results, ids[: len(message.tool_results)])
                ]
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
                parts.append(self._attached(part))
        return parts

    def _attached(self, part: ImageContent | FileContent) -> JsonValue:
        match readable(part, self._takes):
            case str(text):
                return _text_part(text)
            case ImageContent() as image:
                return {"type": "input_image", "image_url": data_url(image), "detail": "auto"}
            case FileContent(url=str(url)):
                return {"type": "input_file", "file_url": url}
            case FileContent() as file:
                return {"type": "input_file", "filename": file.name or DEFAULT_NAME, "file_data": data_url(file)}

    def _result_item(self, result: ToolResultContent, call_id: str) -> JsonObject:
        output: JsonValue = result.result
        if result.attachments:
            texts = [_text_part(result.result)] if result.result else []
            output = [*texts, *map(self._attached, result.attachments)]
        return {"type": "function_call_output", "call_id": call_id, "output": output}


class _Call(msgspec.Struct):
    type: str = ""
    call_id: str | None = None


_decode_calls = msgspec.json.Decoder(list[_Call]).decode


def call_ids(items: ProviderItems) -> list[str]:
    """The provider's ids of the calls, in their order. Raises ValueError if one is missing or
    repeated."""
    return distinct_ids([item.call_id for item in _decode_calls(items.data) if item.type == "function_call"])


def _text_part(text: str) -> JsonValue:
    return {"type": "input_text", "text": text}


def _assistant_items(message: Message) -> list[JsonObject]:
    """The neutral form. Calls have no item id: the provider would look for their reasoning."""
    text = message.text
    items: list[JsonObject] = [{"role": "assistant", "content": text}] if text else []
    return [*items, *map(_call_item, message.tool_uses)]


def _call_item(use: ToolUse) -> JsonObject:
    arguments = _encode(wire_params(use)).decode()
    return {"type": "function_call", "call_id": use.id, "name": use.name, "arguments": arguments}


def _encode_tools(tools: tuple[Tool, ...]) -> bytes:
    """`strict` is false: schemas of tools are not of the subset that strict mode takes."""
    return _encode(
        [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": object_schema(tool.parameters),
                "strict": False,
            }
            for tool in tools
        ]
    )
