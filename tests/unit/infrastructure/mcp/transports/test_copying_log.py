"""Logs of processes: what they pass on to the log of their server, and what they keep."""

import tracemalloc

import pytest

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
        "next",
        "[dragoman] it ended",
        "last",
    ]


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
