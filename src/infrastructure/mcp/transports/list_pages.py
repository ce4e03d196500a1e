"""Large pages of `tools/list`, whose entries stay undecoded: who reads the list decodes them in
slices. No I/O."""

from typing import Any, Final, Literal

import msgspec

from infrastructure.mcp.pace import FREE_BYTES

_MAX_COMMAS: Final = 400_000
"""A page with more is read like other replies, whose values are counted."""


class _Page(msgspec.Struct):
    tools: list[msgspec.Raw]
    nextCursor: str | None = None  # noqa: N815 (the name in MCP)


class _Reply(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: int | str
    result: _Page
    error: msgspec.UnsetType | None = msgspec.UNSET


_REPLY = msgspec.json.Decoder(_Reply)


def page_of(text: bytes) -> tuple[int | str, dict[str, Any]] | None:
    """The id and the result of a large reply with tools, which are JSON text (`msgspec.Raw`); None
    for others."""
    if len(text) <= FREE_BYTES or text.count(b",") > _MAX_COMMAS:
        return None
    try:
        reply = _REPLY.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    return reply.id, {"tools": reply.result.tools, "nextCursor": reply.result.nextCursor}
