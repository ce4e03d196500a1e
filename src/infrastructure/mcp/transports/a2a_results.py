"""A remote A2A agent as an MCP server sees it: its card as a tool, its tasks and messages as
results."""

import base64
import hashlib
import json
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from application.mcp.ports import McpFailureKind
from domain.threads.attachments import IMAGE_TYPES, PDF, text_of
from domain.threads.message import FileContent
from infrastructure.mcp.faults import TransportFault

TOOL = "send_message"
TERMINAL = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})
WAITING = frozenset({"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"})
_MODES = (
    "text/plain",
    "application/json",
    *sorted(IMAGE_TYPES),
    PDF,
    "audio/wav",
    "audio/mpeg",
    "text/markdown",
    "text/html",
    "text/csv",
)
"""Media types of results that models read."""
_STANDARD = str.maketrans("-_", "+/")
"""ProtoJSON takes both alphabets of base64."""
_MAX_SKILLS = 50
_MAX_TEXT = 1_000

Json = Mapping[str, Any]


def tool_of(card: Json) -> dict[str, object]:
    """The tool of an agent. Its `_meta` has the digest of the card without its signatures, so any
    change of the card is one of the tool."""
    content = {name: value for name, value in card.items() if name != "signatures"}
    skills = [_skill(skill) for skill in json_objects(card.get("skills"))[:_MAX_SKILLS]]
    told = [f"Gives the agent {_text(card.get('name'))} a task: {_text(card.get('description'))}", *skills]
    return {
        "name": TOOL,
        "title": _text(card.get("name")),
        "description": "\n".join(told),
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "What the agent is to do, or the answer to its question."},
                "data": {"type": "object", "description": "Data for the agent, beside the message."},
                "context_id": {"type": "string", "description": "Continues the conversation of an earlier result."},
                "task_id": {"type": "string", "description": "Answers the question of a task that waits."},
            },
            "required": ["message"],
            "additionalProperties": False,
        },
        "annotations": {"openWorldHint": True},
        "_meta": {"a2a/card": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()},
    }


def message_of(arguments: Json, message_id: str) -> dict[str, object]:
    """The parameters of `SendMessage` for the arguments of a call; the answer comes as soon as
    there is a task."""
    parts: list[Json] = [{"text": str(arguments.get("message", ""))}]
    if isinstance(arguments.get("data"), dict):
        parts.append({"data": arguments["data"]})
    names = {"taskId": arguments.get("task_id"), "contextId": arguments.get("context_id")}
    return parameters_of(parts, message_id, names)


def parameters_of(parts: Sequence[Json], message_id: str, names: Json) -> dict[str, object]:
    """The parameters of `SendMessage`; `names` may have the task and the context."""
    named = {field: str(name) for field, name in names.items() if name}
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": list(parts), **named}
    return {"message": message, "configuration": {"returnImmediately": True, "acceptedOutputModes": list(_MODES)}}


def said_in(message: Json) -> Sequence[str]:
    """The texts of a message."""
    return [part["text"] for part in json_objects(message.get("parts")) if isinstance(part.get("text"), str)]


def state_of(task: Json) -> str:
    return str(json_object(task.get("status")).get("state", ""))


def result_of_message(message: Json) -> dict[str, object]:
    return {"content": list(_contents(message)), "isError": False}


def result_of_task(task: Json) -> dict[str, object]:
    """The artifacts of a task, or what it asks; a failed task is an error."""
    state, status = state_of(task), json_object(task.get("status"))
    said = list(_contents(json_object(status.get("message"))))
    about = f"task_id: {task.get('id')}, context_id: {task.get('contextId')}"
    if state in WAITING:
        note = f"The task waits for an answer. Answer by another call with its {about}."
        return {"content": [*said, {"type": "text", "text": note}], "isError": False}
    if state != "TASK_STATE_COMPLETED":
        ended = state.removeprefix("TASK_STATE_").lower() or "unknown"
        return {"content": [{"type": "text", "text": f"The task ended: {ended}."}, *said], "isError": True}
    made = [content for artifact in json_objects(task.get("artifacts")) for content in _contents(artifact)]
    return {"content": [*(made or said), {"type": "text", "text": about}], "isError": False}


def fault_after_message(fault: TransportFault, task_id: str) -> TransportFault:
    """A fault of reading a task: the agent has the message, so it is not sent again."""
    lost = f"The agent works on the task {task_id}, which cannot be read."
    shown = f"{lost} It has the message: do not send it again. {fault.for_model or ''}".rstrip()
    kind = McpFailureKind.CONNECTION_LOST
    return replace(fault, kind=kind, detail=f"{lost} {fault.detail}", not_executed=False, for_model=shown)


def _contents(holder: Json) -> Iterator[dict[str, object]]:
    for part in json_objects(holder.get("parts")):
        media_type = _media_type(part)
        if isinstance(part.get("text"), str):
            yield {"type": "text", "text": part["text"]}
        elif isinstance(part.get("raw"), str):
            yield from _file(part, media_type)
        elif isinstance(part.get("url"), str):
            name = str(part.get("filename") or part["url"])
            yield {"type": "resource_link", "uri": part["url"], "name": name, "mimeType": media_type}
        elif "data" in part:
            yield {"type": "text", "text": json.dumps(part["data"], ensure_ascii=False)}


def _file(part: Json, media_type: str) -> Iterator[dict[str, object]]:
    """Bytes: an image, a text with its name before it, or a file, which models read if they read
    its kind."""
    raw, name = part["raw"].translate(_STANDARD), str(part.get("filename") or "file")
    raw += "=" * (-len(raw) % 4)
    if media_type.startswith("image/"):
        yield {"type": "image", "data": raw, "mimeType": media_type}
        return
    text = text_of(FileContent(media_type=media_type, data=raw)) if _is_base64(raw) else None
    if text is None:
        yield {"type": "resource", "resource": {"uri": f"a2a:/{name}", "mimeType": media_type, "blob": raw}}
    else:
        yield {"type": "text", "text": f"{name}:\n{text}"}


def _media_type(part: Json) -> str:
    """That of the part, otherwise by its name."""
    given = part.get("mediaType") or mimetypes.guess_type(str(part.get("filename") or ""))[0]
    return str(given or "application/octet-stream").partition(";")[0].strip().lower()


def _is_base64(raw: str) -> bool:
    try:
        base64.b64decode(raw, validate=True)
    except ValueError:
        return False
    return True


def _skill(skill: Json) -> str:
    return f"- {_text(skill.get('name'))}: {_text(skill.get('description'))}"


def _text(value: object) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""


def json_object(value: object) -> Json:
    """The value if it is an object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def json_objects(value: object) -> Sequence[Json]:
    """The objects in a list; none in anything else."""
    return [cast(Json, item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []
