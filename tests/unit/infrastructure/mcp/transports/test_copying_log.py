"""Logs of processes: what they pass on to the log of their server, and what they keep."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.mcp.transports.stderr_log import CopyingLog, StderrLog

pytestmark = [pytest.mark.requirement("P3"), pytest.mark.requirement("B3")]


def test_lines_of_processes_are_not_mixed_up_in_the_log_of_the_server() -> None:
    shared = StderrLog()
    ann, ben = CopyingLog(shared), CopyingLog(shared)
    ann.append(b"token=s3cret-")
    ben.append(b"token=other-")
    ann.append(b"of-ann\nnext")
    ben.append(b"of-ben\n")
    ann.note("it ended")
    ben.append(b"last")
    for log in (ben, ann, ben):
        log.finish()
    assert shared.text().splitlines() == [
        "token=s3cret-of-ann",
        "token=other-of-ben",
        "last",
        "next",
        "[dragoman] it ended",
    ]


@pytest.mark.parametrize("begun", [b"token=s3cr", b"#" * 33_000 + b"s3cr"], ids=["short", "too long"])
def test_a_remark_does_not_cut_the_line_in_progress(begun: bytes) -> None:
    shared = StderrLog()
    log = CopyingLog(shared)
    log.note("it begins")
    log.append(begun)
    log.note("it is slow")
    log.append(b"et42\nlast\n")
    log.note("it ended")
    line = (begun + b"et42").decode()
    passed = line if len(line) < 32_768 else "[dragoman] a line of more than 32 KiB is left out"
    expected = ["[dragoman] it begins", passed, "[dragoman] it is slow", "last", "[dragoman] it ended"]
    assert shared.text().splitlines() == expected
    assert "s3cr\n" not in log.text()
    assert not log.text().startswith("et42")


@given(st.lists(st.binary(max_size=40_000) | st.sampled_from([b"\n", b"\n\n", b"#" * 32_768, b"#" * 32_769])))
def test_lines_are_the_same_in_whatever_parts_they_arrive(chunks: list[bytes]) -> None:
    kept: list[bytes] = []

    class Also(StderrLog):
        def append(self, data: bytes) -> None:
            kept.append(data)

    log = CopyingLog(Also())
    for chunk in chunks:
        log.append(chunk)
    log.finish()
    *lines, rest = b"".join(chunks).split(b"\n")
    lines += [rest] if rest else []
    left_out = b"[dragoman] a line of more than 32 KiB is left out"
    assert b"".join(kept).split(b"\n")[:-1] == [left_out if len(line) > 32_768 else line for line in lines]


@pytest.mark.parametrize("chunk_bytes", [1024, 4000, 65536])
def test_of_a_line_that_is_too_long_no_part_is_passed_on(chunk_bytes: int) -> None:
    """A secret that began before the cut would not be known after it."""
    shared = StderrLog()
    log = CopyingLog(shared)
    output = b"first\n" + b"#" * 32_764 + b"s3cret\n" + b"#" * 32_762 + b"s3cret\nlast\n" + b"#" * 65_536
    for start in range(0, len(output), chunk_bytes):
        log.append(output[start : start + chunk_bytes])
    log.finish()
    left_out = "[dragoman] a line of more than 32 KiB is left out"
    assert shared.text().splitlines() == ["first", left_out, "#" * 32_762 + "s3cret", "last", left_out]


def test_of_a_line_that_does_not_end_nothing_is_kept_for_ever() -> None:
    log = CopyingLog(StderrLog())
    tracemalloc.start()
    try:
        for _ in range(4096):
            log.append(b"#" * 1024)
        assert tracemalloc.get_traced_memory()[0] < 128 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "chunks", [[b"s3cret of ann\nlast\n"], [b"s3cret of ", b"ann\nlast\n"], [b"ann\n", b"x" * 8 + b"\nlast\n"]]
)
def test_what_is_left_of_a_line_whose_beginning_gave_way_is_not_shown(chunks: list[bytes]) -> None:
    log = StderrLog(max_bytes=10)
    for chunk in chunks:
        log.append(chunk)
    assert log.text() == "last\n"


def test_a_log_that_never_gave_way_is_shown_from_its_first_byte() -> None:
    log = StderrLog(max_bytes=10)
    log.append(b"one\ntwo\n")
    assert log.text() == "one\ntwo\n"
