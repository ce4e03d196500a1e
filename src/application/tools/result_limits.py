"""Applies policy's `max_results` to arguments and results. An argument is a number of results if
its name is in `COUNTING_ARGUMENTS`. A result is counted if it is an array, or an object with
exactly one array."""

import json
from dataclasses import replace
from typing import TypeGuard

from application.mcp.ports import ContentBlock, ContentKind, McpReply
from domain.json_value import JsonObject, JsonValue

COUNTING_ARGUMENTS = ("limit", "max_results", "count", "top_k")


def clamped(params: JsonObject, schema: JsonObject, max_results: int) -> JsonObject:
    """Lower the arguments that request more results; also negative numbers, which often mean "all".
    An argument whose schema has a greater `minimum` stays: the tool would reject the lowered value.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return params
    lowered: JsonObject = {}
    for name in COUNTING_ARGUMENTS:
        described, value = properties.get(name), params.get(name)
        if described is None or not _is_number(value) or 0 <= value <= max_results:
            continue
        least = described.get("minimum") if isinstance(described, dict) else None
        if not (_is_number(least) and least > max_results):
            lowered[name] = max_results
    return {**params, **lowered} if lowered else params


def limited_value(value: JsonValue, max_results: int) -> tuple[JsonValue, str | None]:
    """The value with at most `max_results` results, and a notice if some are left out."""
    if isinstance(value, list) and len(value) > max_results:
        return value[:max_results], _notice(max_results, len(value))
    if isinstance(value, dict):
        arrays = [(name, entry) for name, entry in value.items() if isinstance(entry, list)]
        if len(arrays) == 1 and len(arrays[0][1]) > max_results:
            name, results = arrays[0]
            return {**value, name: results[:max_results]}, _notice(max_results, len(results))
    return value, None


def limited_text(text: str, max_results: int) -> tuple[str, str | None]:
    """The same for JSON text; any other text stays unchanged."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    kept, notice = limited_value(value, max_results)
    return (text, None) if notice is None else (json.dumps(kept, indent=2, ensure_ascii=False), notice)


def limited_reply(reply: McpReply, max_results: int) -> McpReply:
    """The reply with at most `max_results` results. Servers send results as one JSON text or a text
    each, and mostly as `structuredContent` too."""
    texts = [block for block in reply.content if block.kind is ContentKind.TEXT]
    structured, notice = limited_value(reply.structured, max_results)
    if len(texts) == 1:
        text, of_text = limited_text(texts[0].text, max_results)
        if of_text is not None:
            return _with_texts(reply, (text, of_text), structured)
    if notice is None:
        return reply
    if len(texts) > max_results and len(texts) == _result_count(reply.structured):
        return _with_texts(reply, (*(block.text for block in texts[:max_results]), notice), structured)
    # The text may have its own format with all results: replace it with the truncated structured
    # content.
    return _with_texts(reply, (json.dumps(structured, indent=2, ensure_ascii=False), notice), structured)


def _with_texts(reply: McpReply, texts: tuple[str, ...], structured: JsonValue) -> McpReply:
    others = tuple(block for block in reply.content if block.kind is not ContentKind.TEXT)
    blocks = tuple(ContentBlock(kind=ContentKind.TEXT, text=text) for text in texts)
    return replace(reply, content=(*blocks, *others), structured=structured)


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _result_count(value: JsonValue) -> int | None:
    if isinstance(value, list):
        return len(value)
    arrays = [entry for entry in value.values() if isinstance(entry, list)] if isinstance(value, dict) else []
    return len(arrays[0]) if len(arrays) == 1 else None


def _notice(shown: int, found: int) -> str:
    return f"[{found - shown} of {found} results are missing here: policy allows {shown}]"
