"""Parses results of `tools/call` (MCP 2024-11-05 to 2026-07-28, server/tools). No I/O."""

import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from application.mcp.ports import ContentBlock, ContentKind, McpFailure, McpFailureKind, McpReply
from domain.threads.attachments import PDF
from domain.threads.message import FileContent, ImageContent
from infrastructure.mcp.connections.input_requests import read_input_required
from infrastructure.mcp.faults import TOO_MANY_VALUES
from infrastructure.mcp.text import capped, clean, clean_value
from infrastructure.mcp.transports.value_count import MAX_VALUES

_IMAGE_TYPE = re.compile(r"image/[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
_AUDIO_TYPE = re.compile(r"audio/[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
_CONTAINERS = frozenset({dict, list})
"""The types of decoded objects and arrays."""
_MAX_LABEL = 512
_KIB = 1024


def read_reply(result: Mapping[str, Any]) -> McpReply:
    """Parse a raw result. Raises McpFailure INVALID_REPLY, TOO_LARGE for one of more than
    MAX_VALUES values. An unreadable block is replaced by a description; the other blocks stay."""
    match result.get("resultType", "complete"):
        case "complete":
            pass
        case "input_required":
            return McpReply(is_error=False, content=(), input_required=read_input_required(result))
        case _:
            raise _invalid("The server's reply is of an unknown kind.")
    if _has_too_many_values(result):
        raise McpFailure(McpFailureKind.TOO_LARGE, TOO_MANY_VALUES.detail)
    structured = result.get("structuredContent")
    blocks = result.get("content", [] if structured is not None else None)
    is_error = result.get("isError", False)
    if not isinstance(blocks, list) or not isinstance(is_error, bool):
        raise _invalid("The server's reply is not a valid tool result.")
    return McpReply(
        is_error=is_error,
        content=tuple(_read_block(block) for block in blocks),
        structured=clean_value(structured),
        raw=result,
    )


def _has_too_many_values(result: Mapping[str, Any]) -> bool:
    count = 1
    unread: list[Any] = [result]
    while unread:
        outer = unread.pop()
        inner = outer if isinstance(outer, list) else outer.values()
        count += len(inner)
        if count > MAX_VALUES:
            return True
        unread += [one for one in inner if type(one) in _CONTAINERS]
    return False


def _invalid(detail: str) -> McpFailure:
    return McpFailure(McpFailureKind.INVALID_REPLY, detail)


def _read_block(block: object) -> ContentBlock:
    if not isinstance(block, dict):
        return _left_out("no type")
    kind = block.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return reader(block) if reader else _left_out(_label(kind) or "no type")


def _left_out(what: str) -> ContentBlock:
    return ContentBlock(kind=ContentKind.TEXT, text=f"[content left out: {what}]")


def _text(block: Mapping[str, Any]) -> ContentBlock:
    text = block.get("text")
    return ContentBlock(kind=ContentKind.TEXT, text=clean(text)) if isinstance(text, str) else _left_out("text")


def _image(block: Mapping[str, Any]) -> ContentBlock:
    return _attached(ContentKind.IMAGE, block.get("mimeType") or "image", block.get("data"))


def _audio(block: Mapping[str, Any]) -> ContentBlock:
    return _attached(ContentKind.AUDIO, block.get("mimeType") or "audio", block.get("data"))


def _resource(block: Mapping[str, Any]) -> ContentBlock:
    resource = block.get("resource")
    if not isinstance(resource, dict):
        return _left_out("resource")
    if isinstance(text := resource.get("text"), str):
        return ContentBlock(kind=ContentKind.RESOURCE, text=clean(text))
    uri = _label(resource.get("uri"))
    return _attached(ContentKind.RESOURCE, resource.get("mimeType") or "binary", resource.get("blob"), uri=uri)


def _attached(kind: ContentKind, media_type: object, data: object, *, uri: str | None = None) -> ContentBlock:
    """A block with its image, PDF or audio, and their description. Other bytes are described
    only."""
    size = _decoded_size(data)
    text = _described(media_type, size)
    if uri is not None:
        text = f"{uri} ({text})"
    if size is None or not isinstance(media_type, str) or not isinstance(data, str):
        return ContentBlock(kind=kind, text=text)
    if _IMAGE_TYPE.fullmatch(media_type):
        return ContentBlock(kind=kind, text=text, image=ImageContent(media_type=media_type, data=data))
    if media_type == PDF or _AUDIO_TYPE.fullmatch(media_type):
        name = None if uri is None else uri.rstrip("/").rpartition("/")[2] or None
        return ContentBlock(kind=kind, text=text, file=FileContent(media_type=media_type, name=name, data=data))
    return ContentBlock(kind=kind, text=text)


def _resource_link(block: Mapping[str, Any]) -> ContentBlock:
    name = _label(block.get("title")) or _label(block.get("name"))
    return ContentBlock(kind=ContentKind.RESOURCE_LINK, text=f"{name} ({_label(block.get('uri'))})")


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ContentBlock]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _resource_link,
}


def _label(value: object) -> str:
    return capped(clean(value), _MAX_LABEL) if isinstance(value, str) else ""


def _decoded_size(data: object) -> int | None:
    """Size of base64 data in bytes; None if invalid."""
    if not isinstance(data, str):
        return None
    try:
        return len(binascii.a2b_base64(data, strict_mode=True))
    except ValueError:
        return None


def _described(media_type: object, size: int | None) -> str:
    if size is None:
        return f"{_label(media_type)}, unreadable"
    return f"{_label(media_type)}, {size} bytes" if size < _KIB else f"{_label(media_type)}, {size // _KIB} KiB"
