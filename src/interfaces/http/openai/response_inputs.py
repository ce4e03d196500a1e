"""The input items of a response as JSON."""

from domain.ids import ToolCallId, message_id
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import FileContent, ImageContent, TextContent, UserContent
from interfaces.http.openai.ids import call_id
from interfaces.http.openai.response_events import ResponseEvents
from interfaces.http.openai.response_ids import item_id


def input_items(response: ResponseEvents) -> list[JsonObject]:
    """The input of the run, or for a later part the outputs of functions that it began with."""
    run = response.run
    if response.place.part:
        return [
            {
                "id": item_id("fco", str(result["tool_id"])),
                "type": "function_call_output",
                "call_id": call_id(run.id, ToolCallId(str(result["tool_id"]))),
                "output": result["result"],
                "status": "completed",
            }
            for result in response.inputs
        ]
    content: list[JsonValue] = [input_part(part) for part in run.input]
    identifier = message_id(run.id, 0, "user")
    return [{"id": identifier, "type": "message", "role": "user", "status": "completed", "content": content}]


def input_part(part: UserContent) -> JsonObject:
    """A part of the input as OpenAI shows it."""
    match part:
        case TextContent():
            return {"type": "input_text", "text": part.text}
        case ImageContent():
            return {"type": "input_image", "detail": "auto", "file_id": None, "image_url": _url(part)}
        case FileContent():
            data = None if part.data is None else _url(part)
            return {
                "type": "input_file",
                "file_id": None,
                "filename": part.name,
                "file_data": data,
                "file_url": part.url,
            }


def _url(part: ImageContent | FileContent) -> str:
    return part.url or f"data:{part.media_type};base64,{part.data}"
