"""Tools and tool results in MCP's format (MCP server/tools). Pure."""

from collections.abc import Mapping
from typing import TypeVar, cast
from urllib.parse import quote

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.contents.content_names import with_exposed_links, with_exposed_uri
from application.tools.result_text import cleaned
from domain.json_value import JsonObject
from domain.threads.message import FileContent, ImageContent
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

OWN_META = "dragoman/"
_RESERVED_LABELS = frozenset({"modelcontextprotocol", "mcp"})
HOP_META = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})

_Value = TypeVar("_Value")


def tool_json(name: str, tool: Tool, *, as_task: bool = False, uris_of: str | None = None) -> JsonObject:
    """A tool in `tools/list`.

    - Hints are the server's own claims.
    - A server's `execution` is omitted, because calls through the gateway do not run as the
      server's tasks.
    - With `as_task`, agent tools declare that they may be called as a task.
    - `uris_of`: slug of the tool's server, if the client knows the server's resources by other
      URIs.
    """
    shape: JsonObject = {"name": name, "description": tool.description, "inputSchema": tool.parameters}
    if as_task and tool.type is ToolType.AGENT:
        shape["execution"] = {"taskSupport": "optional"}
    definition = None if tool.mcp is None else tool.mcp.definition
    if definition is None:
        return shape
    display = definition.display
    shape |= {key: display[key] for key in ("title", "icons") if key in display}
    if isinstance(meta := display.get("_meta"), dict) and (passed := cleaned_meta(meta)):
        shape["_meta"] = cast(JsonObject, with_exposed_links(passed, uris_of))
    if definition.output_schema is not None:
        shape["outputSchema"] = definition.output_schema
    shown = display.get("annotations")
    annotations: JsonObject = {**shown} if isinstance(shown, dict) else {}
    if definition.read_only_hint:
        annotations["readOnlyHint"] = True
    if definition.idempotent_hint:
        annotations["idempotentHint"] = True
    if definition.destructive_hint is not None:
        annotations["destructiveHint"] = definition.destructive_hint
    if annotations:
        shape["annotations"] = annotations
    return shape


def answer_json(answer: GatewayAnswer, *, any_structure: bool) -> dict[str, object]:
    """The result of `tools/call`: the server's own result if it may be passed on completely,
    otherwise our text. Before 2026-07-28, `structuredContent` is an object or absent
    (`any_structure` False)."""
    reply = answer.reply
    if reply is not None and reply.raw is not None:
        return _passed_on(reply.raw, any_structure=any_structure, slug=answer.uris_of)
    content: list[object] = [{"type": "text", "text": answer.result.text}]
    content += [_image_json(image) for image in answer.result.images]
    content += [_file_json(file) for file in answer.result.files]
    return {"content": content, "isError": answer.result.is_error}


def cleaned_meta(meta: Mapping[str, _Value]) -> dict[str, _Value]:
    """`_meta` for the next hop: without entries for one hop, and without keys with a prefix that is
    reserved for the protocol (MCP basic, `_meta`: `io.modelcontextprotocol/`, `tools.mcp.com/`, …)
    or for Dragoman."""
    return {
        key: value
        for key, value in meta.items()
        if key not in HOP_META and not key.startswith(OWN_META) and not _is_reserved(key)
    }


def _is_reserved(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    labels = prefix.lower().split(".") if slash else []
    # The first two labels since 2025-11-25; before, any but the last.
    return any(label in _RESERVED_LABELS for place, label in enumerate(labels) if place < 2 or place < len(labels) - 1)


def _passed_on(raw: Mapping[str, object], *, any_structure: bool, slug: str | None) -> dict[str, object]:
    content = raw.get("content") or []
    if slug is not None and isinstance(content, list):
        content = [with_exposed_uri(block, slug) for block in content]
    kept: dict[str, object] = {"content": cleaned_json(content), "isError": raw.get("isError", False)}
    structured = raw.get("structuredContent")
    if isinstance(structured, dict) or (any_structure and structured is not None):
        kept["structuredContent"] = cleaned_json(structured)
    meta = raw.get("_meta")
    if isinstance(meta, dict) and (passed := cleaned_meta(cast("dict[str, object]", meta))):
        kept["_meta"] = cleaned_json(with_exposed_links(passed, slug))
    return kept


def cleaned_json(value: object) -> object:
    """A JSON value without control characters in its texts."""
    match value:
        case str():
            return cleaned(value)
        case dict():
            return {cleaned(key): cleaned_json(item) for key, item in value.items()}
        case list():
            return [cleaned_json(item) for item in value]
        case _:
            return value


def _image_json(image: ImageContent) -> dict[str, object]:
    if image.data is None:
        return {"type": "text", "text": image.url or ""}
    return {"type": "image", "mimeType": image.media_type, "data": image.data}


def _file_json(file: FileContent) -> dict[str, object]:
    if file.media_type.startswith("audio/"):
        return {"type": "audio", "mimeType": file.media_type, "data": file.data or ""}
    # The URI of the server's resource is in the text.
    uri = f"attachment:///{quote(file.name or 'file')}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": file.media_type, "blob": file.data or ""}}
