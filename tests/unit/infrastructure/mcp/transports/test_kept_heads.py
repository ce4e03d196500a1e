"""Heads of POSTs that are kept for the next one with the same headers."""

import pytest

from infrastructure.http.kept_connection import Origin
from infrastructure.mcp.transports.kept_heads import MAX_HEAD_BYTES, MAX_HEADS, KeptHeads

ORIGIN = Origin("127.0.0.1", 80, False, "127.0.0.1")


def test_the_same_headers_have_the_same_head_and_others_another() -> None:
    heads = KeptHeads({"authorization": "Bearer theirs"})
    first = heads.of(ORIGIN, "/mcp", {"mcp-name": "echo"})

    assert heads.of(ORIGIN, "/mcp", {"mcp-name": "echo"}) is first
    assert heads.of(ORIGIN, "/mcp", {"mcp-name": "other"}) != first
    assert heads.of(ORIGIN, "/elsewhere", {"mcp-name": "echo"}) != first
    assert b"authorization: Bearer theirs\r\n" in first


def test_what_is_kept_is_bounded_in_number_and_in_size() -> None:
    heads = KeptHeads({})
    for number in range(2 * MAX_HEADS):
        heads.of(ORIGIN, "/mcp", {"mcp-param-text": str(number)})
    assert 0 < heads.kept <= MAX_HEADS
    kept = heads.kept

    long = heads.of(ORIGIN, "/mcp", {"mcp-param-text": "x" * MAX_HEAD_BYTES})

    assert len(long) > MAX_HEAD_BYTES
    assert heads.kept == kept


def test_a_header_that_would_be_several_is_refused_each_time() -> None:
    heads = KeptHeads({})
    for _ in range(2):
        with pytest.raises(ValueError, match="line ends"):
            heads.of(ORIGIN, "/mcp", {"mcp-name": "a\r\nx-other: 1"})
    assert heads.kept == 0
