"""What a stdio server writes, as JSON-RPC messages: lines of bounded size, and no line that ends the connection.

Pure, no I/O. Used by ``stdio.py``.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from application.system.event_stream import OversizedEvent
from infrastructure.mcp.faults import REPLY_TOO_LARGE, REPLY_UNREADABLE

MAX_UNASKED_BYTES: Final = 512 * 1024
"""Of a request or notification of a server. Parsed, a message takes up to a hundred times its size in memory."""

_HEAD_BYTES = 4096
_TAIL_BYTES = 1024
_SHOWN_CHARACTERS = 200
_HALF_PAIR = re.compile(r"[\ud800-\udfff]")

# JSON tokens without nesting: enough to read an envelope around a value that is not looked at.
_STRING = rb'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(rb"\s*(%b)\s*:\s*(%b|-?\d+(?:\.\d+)?|true|false|null)\s*([,}])" % (_STRING, _STRING))


class _Envelope(msgspec.Struct):
    method: msgspec.Raw = msgspec.Raw()


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class UnreadableLineError(ValueError):
    """A line that is no JSON-RPC message and belongs to no call; `shown` is the beginning of it."""

    def __init__(self, line: bytes) -> None:
        self.shown = line[: _SHOWN_CHARACTERS * 4].decode(errors="replace")[:_SHOWN_CHARACTERS].strip()
        super().__init__(f"not a JSON-RPC message: {self.shown}")


class OversizedLineError(ValueError):
    """A line above the limit that belongs to no call. The limit of what a server says unasked is lower than that of answers."""

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"message of {size} bytes exceeds the limit of {limit} bytes")


Settled = Callable[[int | str, dict[str, Any]], bool]
"""Whether the call with the id was waiting, and has been given the result."""


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A discarded line: its size in bytes without the newline, its beginning and its end."""

    size: int
    head: bytes
    tail: bytes


class BoundedLines:
    """Cuts a byte stream into lines, keeping at most `max_bytes` of a line that is not complete."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | OversizedLine]:
        """The lines completed by `data`, without their newlines."""
        *complete, rest = data.split(b"\n")
        lines: list[bytes | OversizedLine] = []
        for part in complete:
            if not self._size and len(part) <= self._max_bytes:
                lines.append(part)
                continue
            self._extend(part)
            lines.append(self._take())
        self._extend(rest)
        return lines

    def _extend(self, part: bytes) -> None:
        was_within = self._size <= self._max_bytes
        self._size += len(part)
        self._line += part
        if self._size > self._max_bytes:
            if was_within:
                self._head = bytes(self._line[:_HEAD_BYTES])
            del self._line[:-_TAIL_BYTES]

    def _take(self) -> bytes | OversizedLine:
        line, size = bytes(self._line), self._size
        self._line, self._size = bytearray(), 0
        return OversizedLine(size, self._head, line) if size > self._max_bytes else line


def read_line(line: bytes, settled: Settled | None = None) -> list[SessionMessage | Exception]:
    """The messages in a line: one, none for a blank line, several for a batch (a 2025-03-26 server may send those).

    `settled` is asked first about a result: whether its call has been given it, and no message need be made of it.
    A reply that cannot be read becomes an error reply for the call it belongs to, so that nobody waits for it in vain;
    anything else that cannot be read becomes an `UnreadableLineError`, which the SDK's session takes as a value.
    """
    text = line.strip()
    if not text:
        return []
    if text[0] not in b"{[":  # cheap: a server may print a lot
        return [UnreadableLineError(text)]
    if len(text) > MAX_UNASKED_BYTES and _is_unasked(text):
        return [OversizedLineError(len(text), MAX_UNASKED_BYTES)]
    if (plain := _plain_response(text)) is not None:
        call_id, result = plain
        if settled is not None and settled(call_id, result):
            return []
        return [SessionMessage(JSONRPCResponse.model_construct(jsonrpc="2.0", id=call_id, result=result))]
    try:
        return [SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))]
    except ValueError:
        return _read_odd_line(text)


def _is_unasked(text: bytes) -> bool:
    """Whether a line is a request or a notification, without building the values in it."""
    try:
        return bool(bytes(_ENVELOPE.decode(text).method))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


def _plain_response(text: bytes) -> tuple[int | str, dict[str, Any]] | None:
    """The id and result in what nearly every line is, without the detour over all the kinds of messages that it is not."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if not isinstance(value, dict) or len(value) != 3 or value.get("jsonrpc") != "2.0":
        return None
    call_id, result = value.get("id"), value.get("result")
    if not isinstance(result, dict) or not isinstance(call_id, int | str) or isinstance(call_id, bool):
        return None
    return call_id, result


def read_oversized(line: OversizedLine | OversizedEvent, limit: int) -> SessionMessage | Exception:
    """An error reply for the call that the discarded line or event belongs to, else an `OversizedLineError`."""
    call_id = _reply_id(line.head, line.tail)
    if call_id is None:
        return OversizedLineError(line.size, limit)
    return _error_reply(
        call_id,
        ErrorData(
            code=REPLY_TOO_LARGE,
            message=f"reply of {line.size} bytes exceeds the limit of {limit} bytes",
            data={"size": line.size, "limit": limit},
        ),
    )


def _read_odd_line(line: bytes) -> list[SessionMessage | Exception]:
    """Second, slower look: a batch, and text that strict readers refuse (invalid UTF-8, half of a surrogate pair)."""
    try:
        value = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return [_unreadable(line)]
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return [_unreadable(line)]
    return [_read_object(part) for part in parts]


def _read_object(part: object) -> SessionMessage | Exception:
    text = _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", json.dumps(part, ensure_ascii=False)).encode()
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError:
        return _unreadable(text)


def _unreadable(line: bytes) -> SessionMessage | Exception:
    call_id = _reply_id(line[:_HEAD_BYTES], line[-_TAIL_BYTES:])
    if call_id is None:
        return UnreadableLineError(line)
    return _error_reply(call_id, ErrorData(code=REPLY_UNREADABLE, message="the reply is not a valid JSON-RPC message"))


def _error_reply(call_id: int | str, error: ErrorData) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=call_id, error=error))


def _reply_id(head: bytes, tail: bytes) -> int | str | None:
    """The id of the reply with this beginning and end; None for requests, notifications and what is not JSON.

    Servers write the id before the result (Python's SDK) or after it (TypeScript's), so both ends are read.
    """
    members = _leading_members(head) | _trailing_members(tail)
    if b'"id"' not in members or b'"method"' in members:
        return None
    call_id = json.loads(members[b'"id"'].decode(errors="replace"))
    return call_id if isinstance(call_id, int | str) and not isinstance(call_id, bool) else None


def _leading_members(head: bytes) -> dict[bytes, bytes]:
    """The unnested members of a JSON object before its first nested one."""
    opening = re.match(rb"\s*\{", head)
    return _members(head, opening.end())[0] if opening else {}


def _trailing_members(tail: bytes) -> dict[bytes, bytes]:
    """The unnested members of a JSON object after its last nested one."""
    tail = tail.rstrip()
    failed: set[int] = set()  # a member that starts here leads nowhere
    for comma in re.finditer(rb",", tail):
        members, end = _members(tail, comma.end(), failed)
        if members and end == len(tail):
            return members
    return {}


def _members(text: bytes, start: int, known: set[int] | None = None) -> tuple[dict[bytes, bytes], int]:
    """The members from `start`, and where they end; those of which the starts are `known` are not read again."""
    members: dict[bytes, bytes] = {}
    seen = set() if known is None else known
    while start not in seen and (found := _MEMBER.match(text, start)):
        seen.add(start)
        members[found[1]] = found[2]
        start = found.end()
        if found[3] == b"}":
            break
    return members, start
