"""Messages of a chat as a front end has them: what its client makes of the chunks of an answer."""

from collections.abc import Iterable
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from domain.threads.message import FileContent, ImageContent, Message, Role, TextContent, UserContent

_STATES = {
    "tool-approval-request": "approval-requested",
    "tool-approval-response": "approval-responded",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
}
_TOLD = ("output", "errorText")


def input_message(run: Run) -> JsonObject:
    """What the user said."""
    return {"id": f"{run.id}_input", "role": "user", "parts": [_part(content) for content in run.input]}


def earlier_messages(messages: Iterable[Message]) -> list[JsonObject]:
    """The texts and files of messages that were there before the first run of the thread."""
    told: list[JsonObject] = []
    for message in messages:
        parts: list[JsonValue] = [_part(part) for part in message.content if isinstance(part, UserContent)]
        if parts and message.role in (Role.USER, Role.ASSISTANT):
            told.append({"id": message.id, "role": message.role.value, "parts": parts})
    return told


def answer_message(run: Run, chunks: Iterable[JsonObject]) -> JsonObject:
    """The message of an answer that has ended."""
    parts: list[JsonObject] = []
    texts: list[tuple[JsonObject, list[str]]] = []
    for chunk in chunks:
        kind = str(chunk["type"])
        match kind:
            case "start-step":
                parts.append({"type": "step-start"})
            case "reset-step":
                while parts[-1]["type"] != "step-start":
                    parts.pop()
            case "text-start" | "reasoning-start":
                parts.append({"type": kind.partition("-")[0], "text": "", "state": "done"})
                texts.append((parts[-1], []))
            case "text-delta" | "reasoning-delta":
                told = next(told for part, told in reversed(texts) if part["type"] == kind.partition("-")[0])
                told.append(str(chunk["delta"]))
            case "tool-input-available":
                _begin_call(parts, chunk)
            case _ if kind in _STATES:
                _change_call(parts, chunk)
            case _:
                pass
    for part, told in texts:
        part["text"] = "".join(told)
    return {"id": run.id, "role": "assistant", "parts": cast("list[JsonValue]", parts)}


def _begin_call(parts: list[JsonObject], chunk: JsonObject) -> None:
    call: JsonObject = {name: chunk[name] for name in ("toolCallId", "input", "providerExecuted")}
    named: JsonObject = {"type": f"tool-{chunk['toolName']}"}
    if chunk["dynamic"]:
        named = {"type": "dynamic-tool", "toolName": chunk["toolName"]}
    parts[:] = [part for part in parts if part.get("toolCallId") != chunk["toolCallId"]]
    parts.append({**named, **call, "state": "input-available"})


def _change_call(parts: list[JsonObject], chunk: JsonObject) -> None:
    for part in parts:
        approval = part.get("approval")
        if part.get("toolCallId") == chunk.get("toolCallId") or (
            isinstance(approval, dict) and approval["id"] == chunk.get("approvalId")
        ):
            part["state"] = _STATES[str(chunk["type"])]
            if "approvalId" in chunk:
                approved: JsonObject = {"approved": chunk["approved"]} if "approved" in chunk else {}
                part["approval"] = {"id": chunk["approvalId"], **approved}
            part.update({name: chunk[name] for name in _TOLD if name in chunk})


def _part(content: UserContent) -> JsonObject:
    match content:
        case TextContent():
            return {"type": "text", "text": content.text}
        case ImageContent() | FileContent():
            url = content.url or f"data:{content.media_type};base64,{content.data}"
            named: JsonObject = {"filename": content.name} if isinstance(content, FileContent) and content.name else {}
            return {"type": "file", "mediaType": content.media_type, "url": url, **named}
