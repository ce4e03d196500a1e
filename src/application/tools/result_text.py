"""Converts results of tools to text for the model: strings unchanged, objects as indented JSON,
blocks by kind."""

import json
from collections.abc import Iterator

from application.mcp.ports import ContentBlock, ContentKind, McpReply
from domain.json_value import JsonValue
from domain.threads.attachments import MAX_ATTACHED_BYTES, MAX_ATTACHMENTS, size_of
from domain.tools.result import ToolResult

TEXT_LIMIT_BYTES = 64 * 1024
FAILURE_LIMIT_BYTES = 2 * 1024
_UTF8_BYTES = 4
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))


def value_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def reply_result(reply: McpReply) -> ToolResult:
    """The reply as a succeeded result. Texts are joined by line breaks; what is not attached is
    described, and so are resources. `structuredContent` is used if there is no text."""
    if len(reply.content) == 1 and (only := reply.content[0]).kind is ContentKind.TEXT and only.text:
        return ToolResult.succeeded(only.text)
    texts = [block.text for block in reply.content if block.kind is ContentKind.TEXT and block.text]
    if not texts and reply.structured is not None:
        texts = [value_text(reply.structured)]
    attached = tuple(_attached(reply))
    others = [block.text for block in reply.content if block.text and _is_described(block, attached)]
    return ToolResult.succeeded(
        "\n".join(texts + others),
        tuple([block.image for block in attached if block.image is not None]),
        tuple([block.file for block in attached if block.file is not None]),
    )


def _is_described(block: ContentBlock, attached: tuple[ContentBlock, ...]) -> bool:
    """Only the description of a resource has its URI."""
    match block.kind:
        case ContentKind.TEXT:
            return False
        case ContentKind.RESOURCE:
            return True
        case _:
            return all(block is not other for other in attached)


def _attached(reply: McpReply) -> Iterator[ContentBlock]:
    """The blocks with images and files, up to the bounds of a message."""
    count = size = 0
    for block in reply.content:
        part = block.image or block.file
        if part is None:
            continue
        count += 1
        size += size_of(part)
        if count > MAX_ATTACHMENTS or size > MAX_ATTACHED_BYTES:
            return
        yield block


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
