"""Logs of processes: what they pass on to the log of their server, and what they keep."""

import pytest

from infrastructure.mcp.transports.server_transports import CopyingLog
from infrastructure.mcp.transports.stdio import StderrLog

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


def test_a_line_without_end_is_passed_on_in_parts_and_not_kept_for_ever() -> None:
    shared = StderrLog()
    log = CopyingLog(shared)
    for _ in range(9):
        log.append(b"#" * 1024)
    assert shared.text() == "#" * 9 * 1024 + "\n"


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
