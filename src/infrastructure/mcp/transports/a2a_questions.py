"""What a remote A2A task asks, as questions of an MCP server to people, and their answers as parts
of a message."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from infrastructure.mcp.transports.a2a_results import Json, json_object, json_objects, said_in, state_of

_ANSWER = "answer"
_URL = re.compile(r"https?://[^\s<>\"')\]]+")
_KINDS = ("approval", "form", "page", "result")
_DECISION = {
    "type": "object",
    "properties": {"approved": {"type": "boolean", "title": "Approve"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


def mark_of(task: Json) -> str:
    """Tells the question of a task from later ones."""
    status = json_object(task.get("status"))
    message_id = json_object(status.get("message")).get("messageId")
    told = message_id if isinstance(message_id, str) and message_id else json.dumps(status, sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def requests_of(task: Json) -> dict[str, Any]:
    """The `inputRequests` of a task that waits (MCP 2026-07-28). Agents that name what they wait
    for, as Dragoman's do by `pending`, ask one question for each; others ask for a text, or for the
    visit of the page that they name."""
    pending = _pending(task)
    if pending:
        return {str(number): _request(asked) for number, asked in enumerate(pending)}
    text = "\n".join(said_in(json_object(json_object(task.get("status")).get("message")))) or "The agent waits."
    if state_of(task) != "TASK_STATE_AUTH_REQUIRED":
        return {_ANSWER: _form(text, _one_text(_ANSWER))}
    found = _URL.search(text)
    if found is not None:
        return {_ANSWER: _page(text, found.group())}
    return {_ANSWER: _form(f"{text}\nAccept once this is done.", {"type": "object", "properties": {}})}


def answer_of(task: Json, responses: Mapping[str, Any]) -> Sequence[Json] | None:
    """The parts that answer a task; none where the agent learns by itself that a page was visited.
    None: people declined, and the protocol has no word for it."""
    pending = _pending(task)
    if pending:
        given = [_answered(asked, json_object(responses.get(str(number)))) for number, asked in enumerate(pending)]
        return [{"data": answer} for answer in given]
    response = json_object(responses.get(_ANSWER))
    if response.get("action") != "accept":
        return None
    if state_of(task) == "TASK_STATE_AUTH_REQUIRED":
        return []
    return [{"text": str(json_object(response.get("content")).get(_ANSWER, ""))}]


def _pending(task: Json) -> Sequence[Json]:
    message = json_object(json_object(task.get("status")).get("message"))
    named = [
        asked
        for part in json_objects(message.get("parts"))
        for asked in json_objects(json_object(part.get("data")).get("pending"))
    ]
    known = all(isinstance(asked.get("id"), str) and asked.get("kind") in _KINDS for asked in named)
    return named if known else []


def _request(asked: Json) -> dict[str, Any]:
    called = f"{asked.get('tool')}({json.dumps(asked.get('arguments'), ensure_ascii=False)})"
    match asked["kind"]:
        case "approval":
            return _form(f"Approve the call {called}? {asked.get('reason', '')}".strip(), _DECISION)
        case "form":
            return _form(str(asked.get("message", "")), asked.get("schema"))
        case "page":
            return _page(str(asked.get("message", "")), asked.get("url"))
        case _:
            return _form(f"Give the result of {called}.", _one_text("result"))


def _answered(asked: Json, response: Json) -> dict[str, Any]:
    accepted, content = response.get("action") == "accept", json_object(response.get("content"))
    match asked["kind"]:
        case "approval":
            reason = {"reason": content["reason"]} if isinstance(content.get("reason"), str) else {}
            return {"id": asked["id"], "approved": accepted and content.get("approved") is True, **reason}
        case "result" if accepted:
            return {"id": asked["id"], "result": content.get("result", "")}
        case "result":
            return {"id": asked["id"], "result": "The person declined to answer.", "isError": True}
        case _:
            return {"id": asked["id"], **response}


def _form(message: str, schema: object) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def _page(message: str, url: object) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def _one_text(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
