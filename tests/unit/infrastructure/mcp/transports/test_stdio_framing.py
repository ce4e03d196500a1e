"""Lines and messages of a stdio server: what is kept, what is dropped, and who is told."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from infrastructure.mcp.faults import REPLY_TOO_LARGE, REPLY_UNREADABLE
from infrastructure.mcp.transports.stdio_framing import (
    MAX_UNASKED_BYTES,
    BoundedLines,
    OversizedLine,
    OversizedLineError,
    UnreadableLineError,
    read_line,
    read_oversized,
)

LIMIT = 1000


def only(items: list[SessionMessage | Exception]) -> SessionMessage | Exception:
    [item] = items
    return item


def error_in(item: SessionMessage | Exception) -> JSONRPCError:
    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCError)
    return item.message


def oversized(text: str) -> OversizedLine:
    [line] = BoundedLines(LIMIT).feed(text.encode() + b"\n")
    assert isinstance(line, OversizedLine)
    return line


@given(st.lists(st.binary(max_size=30).map(lambda part: part.replace(b"\n", b"")), min_size=1), st.data())
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    framing = BoundedLines(20)

    out = [line for start, end in pairwise([0, *cuts, len(stream)]) for line in framing.feed(stream[start:end])]

    assert len(out) == len(lines)
    for got, sent in zip(out, lines, strict=True):
        if len(sent) <= 20:
            assert got == sent
        else:
            assert isinstance(got, OversizedLine)
            assert (got.size, got.tail) == (len(sent), sent)
            assert sent.startswith(got.head)
            assert len(got.head) > 20


@pytest.mark.requirement("B11")
def test_a_line_without_end_takes_no_more_memory_than_the_limit_allows() -> None:
    framing = BoundedLines(LIMIT)
    for _ in range(2000):
        assert framing.feed(b"x" * 1000) == []
        assert len(framing._line) <= 2048

    [line] = framing.feed(b"\nnext")

    assert isinstance(line, OversizedLine)
    assert line.size == 2_000_000
    assert len(line.head) + len(line.tail) < 8192
    assert framing.feed(b" line\n") == [b"next line"]


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("end", [b"\n", b'"}\n'])
def test_a_large_message_that_says_at_once_that_nobody_asked_for_it_is_dropped_while_it_arrives(end: bytes) -> None:
    framing = BoundedLines(4 * MAX_UNASKED_BYTES)
    assert framing.feed(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "') == []
    held = 0
    for _ in range(3 * MAX_UNASKED_BYTES // 1_000):
        assert framing.feed(b"x" * 1_000) == []
        held = max(held, len(framing._line))
    [line] = framing.feed(end)
    assert isinstance(line, OversizedLine)
    assert held <= MAX_UNASKED_BYTES
    refused = read_oversized(line, 4 * MAX_UNASKED_BYTES)
    assert isinstance(refused, OversizedLineError)
    assert (refused.size, refused.limit) == (line.size, MAX_UNASKED_BYTES)
    reply = b'{"jsonrpc":"2.0","id":1,"result":{"method":"' + b"x" * 3 * MAX_UNASKED_BYTES + b'"}}'
    assert framing.feed(reply + b"\n") == [reply]
    assert framing.feed(b"next\n") == [b"next"]


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("call_id", [7, "7", 'a"b\\'])
@pytest.mark.parametrize(
    "order",
    [
        ("jsonrpc", "id", "result"),
        ("id", "result", "jsonrpc"),
        ("result", "jsonrpc", "id"),
        ("result", "id", "jsonrpc"),
        ("jsonrpc", "result", "id"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_an_oversized_reply_fails_the_call_it_answers(
    call_id: int | str, order: tuple[str, ...], separators: tuple[str, str]
) -> None:
    decoy = '{"id": 99, "method": "x"}, "id": 98' * 500
    members = {"jsonrpc": "2.0", "id": call_id, "result": {"a": {"id": 97}, "text": decoy, "b": {"id": 96}}}
    text = json.dumps({name: members[name] for name in order}, separators=separators)

    error = error_in(read_oversized(oversized(text), LIMIT))

    assert error.id == call_id
    assert error.error.code == REPLY_TOO_LARGE
    assert error.error.message == f"reply of {len(text)} bytes exceeds the limit of {LIMIT} bytes"
    assert error.error.data == {"size": len(text), "limit": LIMIT}


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"text":"%s"}}',
        '{"method":"sampling/createMessage","params":{"text":"%s"},"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}',
        '{"id":true,"result":"%s"}',
        '{"result":{"id":1,"text":"%s"}}',
        "%s",
    ],
)
def test_an_oversized_line_that_answers_no_call_fails_none(text: str) -> None:
    line = oversized(text % ("x" * LIMIT + "x"))

    refused = read_oversized(line, LIMIT)

    assert isinstance(refused, OversizedLineError)
    assert (refused.size, refused.limit) == (line.size, LIMIT)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', JSONRPCResponse),
        (b' {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}\r', JSONRPCError),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', JSONRPCRequest),
        (b'{"jsonrpc":"2.0","method":"notifications/message"}', JSONRPCNotification),
    ],
)
def test_every_kind_of_message_is_read(line: bytes, kind: type[object]) -> None:
    item = only(read_line(line))

    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, kind)


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_blank_lines_are_nothing(line: bytes) -> None:
    assert read_line(line) == []


@pytest.mark.parametrize(
    "line",
    [
        b"Listening on stdio",
        b"{broken",
        b"[]",
        b"[1,2,3]",
        b'["a", {"jsonrpc":"2.0","id":1,"result":{}}]',
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc":"1.0"}',
        b'{"id":null,"result":{}}',
        b'{"method":"x","id":1}',
    ],
)
def test_what_is_no_message_is_an_exception_that_shows_it_briefly(line: bytes) -> None:
    item = only(read_line(line))

    assert isinstance(item, UnreadableLineError)
    assert len(str(item)) < 300


@pytest.mark.parametrize(
    "line",
    [b'{"jsonrpc":"2.0","id":5,"result":null}', b'{"id":5,"result":{}}', b'{"result":[1],"jsonrpc":"2.0","id":5}'],
)
def test_a_malformed_reply_fails_the_call_it_answers(line: bytes) -> None:
    error = error_in(only(read_line(line)))

    assert (error.id, error.error.code) == (5, REPLY_UNREADABLE)


@pytest.mark.requirement("B4")
def test_a_batch_is_several_messages_and_a_bad_one_spoils_no_other() -> None:
    items = read_line(b'[{"jsonrpc":"2.0","id":1,"result":{}},{"id":2},{"x":1},{"jsonrpc":"2.0","id":3,"result":{}}]')

    first, malformed, unreadable, last = items
    assert isinstance(first, SessionMessage)
    assert error_in(malformed).id == 2
    assert isinstance(unreadable, UnreadableLineError)
    assert isinstance(last, SessionMessage)


def test_a_result_that_a_call_was_waiting_for_becomes_no_message() -> None:
    waiting: dict[int | str, object] = {"call-1": None}

    def settled(call_id: int | str, result: dict[str, object]) -> bool:
        if call_id in waiting:
            waiting[call_id] = result
        return call_id in waiting

    assert read_line(b' {"jsonrpc":"2.0","id":"call-1","result":{"a":1}}\r', settled) == []
    assert waiting == {"call-1": {"a": 1}}
    others = [
        b'{"jsonrpc":"2.0","id":7,"result":{}}',
        b'{"jsonrpc":"2.0","id":"call-1","error":{"code":1,"message":"m"}}',
    ]
    assert [type(only(read_line(line, settled))) for line in others] == [SessionMessage, SessionMessage]
    assert waiting == {"call-1": {"a": 1}}


@pytest.mark.requirement("B11")
@given(st.binary())
def test_no_line_raises(line: bytes) -> None:
    for item in read_line(line.replace(b"\n", b"")):
        assert isinstance(item, SessionMessage | Exception)


@pytest.mark.parametrize("begin", ['{"method":"notifications/message",', '{"id":7,"params":{"a":1},"method":"ping",'])
def test_what_a_server_says_unasked_may_not_be_as_long_as_an_answer(begin: str) -> None:
    def padded(start: str, size: int) -> bytes:
        return (start + '"jsonrpc":"2.0","params":{"data":"' + "x" * size + '"}}').encode()

    item = only(read_line(padded(begin, MAX_UNASKED_BYTES)))
    assert isinstance(item, OversizedLineError)
    assert item.limit == MAX_UNASKED_BYTES
    assert isinstance(only(read_line(padded('{"method":"notifications/message",', 1_000))), SessionMessage)
    answer = padded('{"id":7,', MAX_UNASKED_BYTES).replace(b'"params"', b'"result"')
    assert isinstance(only(read_line(answer)), SessionMessage)
