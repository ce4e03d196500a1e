"""Content of ACP as parts of a message, and messages as updates of a session (ACP, protocol/content
and protocol/tool-calls). Pure."""

from collections.abc import Iterator
from typing import cast
from urllib.parse import unquote, urlsplit

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.acp.wire import INVALID_PARAMS, RpcFailure
from interfaces.cli.transcript import Part, parts_of
from interfaces.http.threads.views import MessageView


def input_of(prompt: JsonValue) -> list[JsonValue]:
    """The parts of a run's input. Raises RpcFailure for content that cannot be one."""
    if not isinstance(prompt, list) or not prompt:
        raise RpcFailure(INVALID_PARAMS, "prompt must be a list of content blocks.")
    return [_part(block) for block in prompt]


def _part(block: JsonValue) -> JsonValue:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return {"type": "image", "media_type": media_type, "data": data}
        case {"type": "audio", "data": str(data), "mimeType": str(media_type)}:
            return {"type": "file", "media_type": media_type, "data": data}
        case {"type": "resource_link", "uri": str(uri), "name": str(name)}:
            return {"type": "text", "text": f"[{name}]({uri})"}
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return {"type": "text", "text": f"{uri}:\n\n{text}"}
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data), "mimeType": str(media_type)}}:
            name = _name_in(uri)
            return {"type": "file", "media_type": media_type, "data": data, **({"name": name} if name else {})}
        case _:
            raise RpcFailure(INVALID_PARAMS, "A content block of the prompt is of no known type.")


def _name_in(uri: str) -> str:
    """The last segment of its path; empty if there is none."""
    try:
        return unquote(urlsplit(uri).path).rpartition("/")[2]
    except ValueError:
        return ""


def text_chunk(kind: str, text: str, message_id: str) -> JsonObject:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message_id}


def tool_call(call_id: str, name: str, params: JsonObject, status: str = "pending") -> JsonObject:
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": name,
        "kind": "other",
        "status": status,
        "rawInput": params,
    }


def tool_update(call_id: str, status: str, text: str | None = None) -> JsonObject:
    update: JsonObject = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
    if text is not None:
        update["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
    return update


def replayed(message: MessageView) -> Iterator[JsonObject]:
    """A message of the thread as the updates that showed it."""
    for part in parts_of(message):
        if part.type == "tool_result":
            yield result_of(part)
        elif part.type == "tool_use":
            yield tool_call(part.id, part.name, json_params(part))
        elif message["role"] in ("user", "assistant"):
            kind = "user_message_chunk" if message["role"] == "user" else "agent_message_chunk"
            text = part.text if part.type == "text" else f"[{part.name or part.media_type}]"
            yield text_chunk(kind, text, message["id"])


def result_of(part: Part) -> JsonObject:
    """The end of a tool call."""
    return tool_update(part.tool_id, "failed" if part.is_error else "completed", part.result)


def json_params(part: Part) -> JsonObject:
    return cast(JsonObject, part.params)
