"""Converts results of tools to text for the model: strings unchanged, objects as indented JSON,
blocks by kind."""

import json

from application.mcp.ports import ContentKind, McpReply
from domain.json_value import JsonValue
from domain.threads.message import ImageContent

TEXT_LIMIT_BYTES = 64 * 1024
FAILURE_LIMIT_BYTES = 2 * 1024
_UTF8_BYTES = 4
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))


def value_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def reply_text(reply: McpReply) -> tuple[str, tuple[ImageContent, ...]]:
    """Text and images of an MCP reply. Texts are joined by line breaks; other kinds and unreadable
    images are described. `structuredContent` is used if there is no text."""
    if len(reply.content) == 1 and (only := reply.content[0]).kind is ContentKind.TEXT and only.text:
        return only.text, () if only.image is None else (only.image,)
    texts = [block.text for block in reply.content if block.kind is ContentKind.TEXT and block.text]
    if not texts and reply.structured is not None:
        texts = [value_text(reply.structured)]
    others = [
        block.text
        for block in reply.content
        if block.kind is not ContentKind.TEXT and block.image is None and block.text
    ]
    images = tuple(block.image for block in reply.content if block.image is not None)
    return "\n".join(texts + others), images


def cleaned(text: str) -> str:
    """Remove control characters (except line breaks, tabs, carriage returns) and replace lone
    surrogates."""
    if text.isascii() and text.isprintable():  # fast path in C, true for most texts
        return text
    return text.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")


def cut(text: str, limit_bytes: int) -> str:
    """Truncate to `limit_bytes` of UTF-8, with a notice of the missing bytes."""
    if len(text) * _UTF8_BYTES <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return text
    kept = encoded[:limit_bytes].decode("utf-8", "ignore")
    missing = len(encoded) - len(kept.encode())
    return f"{kept}\n[{missing} of {len(encoded)} bytes are missing here: the result was too long]"
