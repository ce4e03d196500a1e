"""The messages of a thread as items of a conversation."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

from domain.ids import ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import Message, Role, ToolResultContent, ToolUse, UserContent
from interfaces.http.openai.response_ids import item_id
from interfaces.http.openai.response_inputs import input_part
from interfaces.http.openai.response_items import arguments_text, label_and_name, mcp_call_item, text_part


def conversation_items(messages: Sequence[Message]) -> list[JsonObject]:
    """Oldest first. Calls of tools of MCP servers have their results; other calls are functions,
    with their outputs as items."""
    results = {result.tool_id: result for message in messages for result in message.tool_results}
    return [item for message in messages for item in _items(message, results)]


async def items_of(messages: AsyncGenerator[Message, None]) -> AsyncGenerator[JsonObject, None]:
    """The same for messages that are read one after the other: the results of a message's calls
    come right after it."""
    together: list[Message] = []
    async with aclosing(messages) as each:
        async for message in each:
            if message.role is not Role.TOOL:
                for item in conversation_items(together):
                    yield item
                together = []
            together.append(message)
    for item in conversation_items(together):
        yield item


def _items(message: Message, results: Mapping[ToolCallId, ToolResultContent]) -> Iterator[JsonObject]:
    said = [part for part in message.content if not isinstance(part, ToolUse | ToolResultContent)]
    if said:
        yield _message_item(message, said)
    for use in message.tool_uses:
        yield _call_item(use, results.get(use.id))
    for result in message.tool_results:
        if not _is_of_server(result.tool_name):
            yield {
                "id": item_id("fco", result.tool_id),
                "type": "function_call_output",
                "call_id": result.tool_id,
                "output": result.result,
                "status": "completed",
            }


def _message_item(message: Message, said: Sequence[UserContent]) -> JsonObject:
    content: list[JsonValue] = (
        [text_part(message.text)] if message.role is Role.ASSISTANT else [input_part(part) for part in said]
    )
    role = message.role.value
    return {"id": message.id, "type": "message", "role": role, "status": "completed", "content": content}


def _call_item(use: ToolUse, result: ToolResultContent | None) -> JsonObject:
    arguments = arguments_text(use.params)
    if not _is_of_server(use.name):
        return {
            "id": item_id("fc", use.id),
            "type": "function_call",
            "call_id": use.id,
            "name": use.name,
            "arguments": arguments,
            "status": "completed",
        }
    call: JsonObject = {"id": use.id, "name": use.name}
    if result is None:
        return mcp_call_item(call, "in_progress", arguments=arguments)
    return mcp_call_item(call, "failed" if result.is_error else "completed", arguments=arguments, output=result.result)


def _is_of_server(name: str) -> bool:
    return label_and_name(name)[1] != name
