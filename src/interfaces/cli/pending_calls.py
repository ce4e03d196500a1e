"""What settles the calls that a run waits for: results, answers and decisions, as `resume` takes
them."""

import json
from collections.abc import Sequence

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import BadUsage


def tool_result(entry: str) -> JsonValue:
    """From `CALL_ID=TEXT`. Raises BadUsage."""
    call_id, separator, text = entry.partition("=")
    if not separator or not call_id:
        raise BadUsage(f"--result takes CALL_ID=TEXT, not {entry[:40]!r}.")
    return {"tool_call_id": call_id, "result": text}


def elicited_answer(entry: str) -> JsonValue:
    """From `CALL_ID=ANSWER`: the form's fields as a JSON object, accept, decline or cancel. Raises
    BadUsage."""
    call_id, separator, text = entry.partition("=")
    if not separator or not call_id:
        raise BadUsage(f"--answer takes CALL_ID=ANSWER, not {entry[:40]!r}.")
    if text in ("accept", "decline", "cancel"):
        return {"tool_call_id": call_id, "result": {"action": text}}
    content = json_object(text)
    if content is None:
        raise BadUsage("--answer takes a JSON object with the form's fields, or accept, decline or cancel.")
    return {"tool_call_id": call_id, "result": {"action": "accept", "content": content}}


def json_object(text: str) -> JsonObject | None:
    """The object that the text is in JSON, or None."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def with_whole_ids(body: JsonObject, pending: Sequence[str]) -> JsonObject:
    """The body of `resume`, in which the beginning of a call's id stands for the one pending call
    that begins so. What none begins with stays, for the service to judge. Raises BadUsage if
    several begin so."""
    return {
        field: [_with_whole_id(entry, pending) for entry in entries] if isinstance(entries, list) else entries
        for field, entries in body.items()
    }


def _with_whole_id(entry: JsonValue, pending: Sequence[str]) -> JsonValue:
    if not isinstance(entry, dict):
        return entry
    given = str(entry["tool_call_id"])
    begun = [call_id for call_id in pending if call_id.startswith(given)]
    if len(begun) > 1 and given not in begun:
        raise BadUsage(f"{given} is the beginning of {len(begun)} calls: {', '.join(begun)}. Give more of it.")
    return {**entry, "tool_call_id": begun[0]} if len(begun) == 1 else entry
