"""Counts the values of a large reply in its text: decoding one of a million values would hold the
event loop for tens of milliseconds, only to refuse it. No I/O."""

from typing import Final

import msgspec

MAX_VALUES: Final = 50_000
"""Most JSON values in a reply. Each is cleaned, scanned and checked on the event loop; a megabyte
can hold half a million."""
MAX_LISTED: Final = 400_000
"""Most values in a page of a list. Of each only its bounds are checked before it is read in
slices."""
_CHUNK_BYTES: Final = 128 * 1024
_BACKSLASH: Final = ord("\\")


class _Lists(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw()
    resources: msgspec.Raw = msgspec.Raw()
    resourceTemplates: msgspec.Raw = msgspec.Raw()  # noqa: N815 (the name in MCP)
    prompts: msgspec.Raw = msgspec.Raw()


class _Reply(msgspec.Struct):
    id: int | str
    result: _Lists


_REPLY = msgspec.json.Decoder(_Reply)


def id_of_excessive(text: bytes) -> int | str | None:
    """The id of a reply whose more than `MAX_VALUES` values are too many: of a list, `MAX_LISTED`
    are. None for others."""
    try:
        reply = _REPLY.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    lists = (reply.result.tools, reply.result.resources, reply.result.resourceTemplates, reply.result.prompts)
    is_list = any(map(bytes, lists))
    return None if is_list and count_values(text, MAX_LISTED) <= MAX_LISTED else reply.id


def count_values(text: bytes, limit: int = MAX_VALUES) -> int:
    """How many values JSON text has, about: `[ ]` with a space counts as two. More than `limit` are
    not counted to the end."""
    count, inside, start = 1, 0, 0
    while start < len(text) and count <= limit:
        end = start + _CHUNK_BYTES
        while end < len(text) and text[end - 1] == _BACKSLASH:
            end += 1
        chunk = text[start:end]
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = chunk.split(b'"')
        count += _separators(b"".join(parts[inside::2]))  # what is outside of strings
        inside ^= (len(parts) - 1) & 1
        start = end
    return count


def _separators(text: bytes) -> int:
    """What each value but the first follows: a comma, or the beginning of what it is the first
    in."""
    openings = text.count(b"[") + text.count(b"{") - text.count(b"[]") - text.count(b"{}")
    return text.count(b",") + openings
