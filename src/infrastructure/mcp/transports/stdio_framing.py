"""Parses a stdio server's output as JSON-RPC messages, in lines of bounded size; no line ends the
connection. No I/O. Used by `stdio.py`."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from application.system.event_stream import OversizedEvent
from infrastructure.mcp.faults import REPLY_TOO_LARGE, REPLY_UNREADABLE, TOO_MANY_VALUES, fault_reply
from infrastructure.mcp.pace import FREE_BYTES
from infrastructure.mcp.text import without_halves
from infrastructure.mcp.transports.list_pages import page_of
from infrastructure.mcp.transports.value_count import MAX_VALUES, count_values, id_of_excessive

MAX_UNASKED_BYTES: Final = 512 * 1024
"""Limit of a server's request or notification. A parsed message takes up to a hundred times its
size in memory."""

_HEAD_BYTES = 4096
_TAIL_BYTES = 1024
_SHOWN_CHARACTERS = 200

# JSON tokens without nesting: enough to read an envelope around an unparsed value.
_STRING = rb'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(rb"\s*(%b)\s*:\s*(%b|-?\d+(?:\.\d+)?|true|false|null)\s*([,}])" % (_STRING, _STRING))


class _Envelope(msgspec.Struct):
    method: msgspec.Raw = msgspec.Raw()


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class UnreadableLineError(ValueError):
    """A line that is not a JSON-RPC message and belongs to no call; `shown` is its beginning."""

    def __init__(self, line: bytes) -> None:
        self.shown = line[: _SHOWN_CHARACTERS * 4].decode(errors="replace")[:_SHOWN_CHARACTERS].strip()
        super().__init__(f"not a JSON-RPC message: {self.shown}")


class OversizedLineError(ValueError):
    """A line over the limit that belongs to no call. The limit of unsolicited messages is lower
    than that of replies."""

    def __init__(self, size: int, limit: int, unit: str = "bytes") -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"message of {size} {unit} exceeds the limit of {limit} {unit}")


Settled = Callable[[int | str, dict[str, Any]], bool]
"""Delivers a result to the waiting call with the id; False if there is none."""


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A discarded line: its size in bytes without the newline, its beginning and its end."""

    size: int
    head: bytes
    tail: bytes


def limit_of(head: bytes, max_bytes: int) -> int:
    """How many bytes a message with this beginning may have: `max_bytes`, unless it says at once
    that it is unasked."""
    return min(MAX_UNASKED_BYTES, max_bytes) if b'"method"' in _leading_members(head) else max_bytes


class BoundedLines:
    """Splits a byte stream into lines, buffering at most `max_bytes` of an incomplete line (of an
    unasked message `MAX_UNASKED_BYTES`)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._first_limit = self._limit = min(MAX_UNASKED_BYTES, max_bytes)
        self._line = bytearray()
        self._size = 0
        self._head = b""
        self._discarded = 0

    def take_discarded(self) -> int:
        """Bytes discarded since the last call, of lines that are too long."""
        discarded, self._discarded = self._discarded, 0
        return discarded

    def feed(self, data: bytes) -> list[bytes | OversizedLine]:
        """The lines completed by `data`, without newlines."""
        *complete, rest = data.split(b"\n")
        lines: list[bytes | OversizedLine] = []
        for part in complete:
            if not self._size and len(part) <= self._first_limit:
                lines.append(part)
                continue
            self._extend(part)
            lines.append(self._take())
        self._extend(rest)
        return lines

    def _extend(self, part: bytes) -> None:
        was_within = self._size <= self._limit
        self._size += len(part)
        self._line += part
        if was_within and self._size > self._limit:
            self._head = bytes(self._line[:_HEAD_BYTES])
            self._limit = max(self._limit, limit_of(self._head, self._max_bytes))
        if self._size > self._limit:
            self._discarded += max(0, len(self._line) - _TAIL_BYTES)
            del self._line[:-_TAIL_BYTES]

    def _take(self) -> bytes | OversizedLine:
        line, size, limit = bytes(self._line), self._size, self._limit
        self._line, self._size, self._limit = bytearray(), 0, self._first_limit
        return OversizedLine(size, self._head, line) if size > limit else line


def read_line(line: bytes, settled: Settled | None = None, values: int = 0) -> list[SessionMessage | Exception]:
    """The messages in a line: one, none for a blank line, several for a batch (2025-03-26 servers).

    - `values` is `values_in` the line. One with too many is not decoded; a reply becomes an error
      reply.
    - `settled` receives results first; no message is built for those it delivers.
    - An unreadable reply becomes an error reply for its call; other unreadable lines become an
      `UnreadableLineError`, which the SDK's session accepts as a value.
    """
    text = line.strip()
    if not text:
        return []
    if text[0] not in b"{[":  # cheap: a server may print a lot
        return [UnreadableLineError(text)]
    if len(text) > MAX_UNASKED_BYTES and _is_unasked(text):
        return [OversizedLineError(len(text), MAX_UNASKED_BYTES)]
    if values > MAX_VALUES:
        if (excessive := id_of_excessive(text)) is not None:
            return [fault_reply(excessive, TOO_MANY_VALUES)]
        if _is_unasked(text):
            return [OversizedLineError(values, MAX_VALUES, "values")]
    if (plain := _plain_response(text)) is not None:
        call_id, result = plain
        if settled is not None and settled(call_id, result):
            return []
        return [SessionMessage(JSONRPCResponse.model_construct(jsonrpc="2.0", id=call_id, result=result))]
    try:
        return [SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))]
    except ValueError:
        return _read_odd_line(text)


def read_counted(
    line: bytes, settled: Settled | None, is_list: Callable[[int | str], bool]
) -> tuple[list[SessionMessage | Exception], int]:
    """`read_line`, and the `values_in` the line. Of a reply to a request for which `is_list` holds,
    a large one, entries stay undecoded and are not counted (`list_pages.py`)."""
    if len(line) > FREE_BYTES:
        call_id = _reply_id(line[:_HEAD_BYTES], line[-_TAIL_BYTES:])
        if call_id is not None and is_list(call_id) and (page := page_of(line)) is not None and page[0] == call_id:
            if settled is not None and settled(*page):
                return [], 0
            return [SessionMessage(JSONRPCResponse.model_construct(jsonrpc="2.0", id=page[0], result=page[1]))], 0
    values = values_in(line)
    return read_line(line, settled, values), values


def values_in(line: bytes) -> int:
    """How many values are in a large line, at least up to one too many; 0 for a small one."""
    return count_values(line) if len(line) > FREE_BYTES else 0


def _is_unasked(text: bytes) -> bool:
    """Whether a line is a request or a notification, without parsing its values."""
    try:
        return bool(bytes(_ENVELOPE.decode(text).method))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


def _plain_response(text: bytes) -> tuple[int | str, dict[str, Any]] | None:
    """The id and result of a plain reply, the form of nearly every line, without parsing other
    kinds of messages."""
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
    """An error reply for the call of a discarded line or event, else an `OversizedLineError`."""
    call_id = _reply_id(line.head, line.tail)
    if call_id is None:
        return OversizedLineError(line.size, limit_of(line.head, limit))
    return _error_reply(
        call_id,
        ErrorData(
            code=REPLY_TOO_LARGE,
            message=f"reply of {line.size} bytes exceeds the limit of {limit} bytes",
            data={"size": line.size, "limit": limit},
        ),
    )


def _read_odd_line(line: bytes) -> list[SessionMessage | Exception]:
    """Slower parsing: batches, and text that strict parsers reject (invalid UTF-8, lone
    surrogates)."""
    try:
        value = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return [_unreadable(line)]
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return [_unreadable(line)]
    return [_read_object(part) for part in parts]


def _read_object(part: object) -> SessionMessage | Exception:
    text = without_halves(json.dumps(part, ensure_ascii=False)).encode()
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
    """The id of the reply with this beginning and end; None for requests, notifications and invalid
    JSON. Python's SDK writes the id before the result, TypeScript's after it, so both ends are
    read."""
    members = _leading_members(head) | _trailing_members(tail)
    if b'"id"' not in members or b'"method"' in members:
        return None
    call_id = json.loads(members[b'"id"'].decode(errors="replace"))
    return call_id if isinstance(call_id, int | str) and not isinstance(call_id, bool) else None


def _leading_members(head: bytes) -> dict[bytes, bytes]:
    """The scalar members of a JSON object before its first nested one."""
    opening = re.match(rb"\s*\{", head)
    return _members(head, opening.end())[0] if opening else {}


def _trailing_members(tail: bytes) -> dict[bytes, bytes]:
    """The scalar members of a JSON object after its last nested one."""
    tail = tail.rstrip()
    failed: set[int] = set()  # positions without a valid member
    for comma in re.finditer(rb",", tail):
        members, end = _members(tail, comma.end(), failed)
        if members and end == len(tail):
            return members
    return {}


def _members(text: bytes, start: int, known: set[int] | None = None) -> tuple[dict[bytes, bytes], int]:
    """The members from `start`, and their end; members at `known` starts are not parsed again."""
    members: dict[bytes, bytes] = {}
    seen = set() if known is None else known
    while start not in seen and (found := _MEMBER.match(text, start)):
        seen.add(start)
        members[found[1]] = found[2]
        start = found.end()
        if found[3] == b"}":
            break
    return members, start
