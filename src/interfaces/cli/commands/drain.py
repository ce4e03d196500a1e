"""`dragoman drain`: a service or worker of this machine finishes what it began, and stops."""

import os
import re
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.loading import loading
from interfaces.cli.session import session_of

WITHIN_S = 600
_HAND_OVER_S = 60.0
"""Time to stop for a process: it finishes the step in hand, and closes connections."""
_INTERPRETERS = (b"python", b"pypy")
_STARTED = re.compile(
    rb"(?:-[XW]\0[^\0]*\0|-(?![^\0\-cmWX]*[cm])[^\0]*\0)*?"  # options, but no program in an argument and no module
    rb"(?:-[^\0\-cmWX]*m\0?(?:dragoman|interfaces\.cli)(?:\.__main__)?|(?:[^\0]*/)?dragoman(?:/__main__\.py)?)\0"
    rb"(?:serve|worker)(?:\0|$)"
)
"""What follows the interpreter in a service's or worker's command line, by the console script or
`python -m` (proc(5), cmdline)."""


def drain(
    context: typer.Context,
    pid: Annotated[
        int | None, typer.Argument(metavar="PID", help="A service or worker. Default: the service of HOME.", min=1)
    ] = None,
    within: Annotated[
        int,
        typer.Option(
            "--within", metavar="SECONDS", min=0, help="Then stop it: runs that have not ended are handed over."
        ),
    ] = WITHIN_S,
) -> None:
    """Let a service or worker finish its runs, and stop. The process is on this machine; it is not
    ready from then on and takes no more runs, which other processes do. The command ends when the
    process has. Workflow runs are handed over at once."""
    with loading():
        from interfaces.draining import DRAIN_SIGNAL

    terminal = session_of(context).terminal
    number = pid or _pid_of_service()
    with _opened(number) as process:
        # The service of HOME may have been started by a program of another name.
        _require_drainable(number, DRAIN_SIGNAL, is_announced=pid is None)
        signal.pidfd_send_signal(process, DRAIN_SIGNAL)
        is_done = _has_ended(process, within)
        if not is_done:
            signal.pidfd_send_signal(process, signal.SIGTERM)
            if not _has_ended(process, _HAND_OVER_S):
                raise CommandFailure(f"The process {number} does not stop.")
    late = f"was stopped after {within} s; what had not ended by then is handed over"
    terminal.line(f"{number}: {'finished its runs' if is_done else late}.")


def _pid_of_service() -> int:
    with loading():
        from interfaces.cli.checked_settings import checked_settings
        from interfaces.cli.connecting import announced_service

    home = checked_settings().home
    announced = announced_service(home)
    if announced is None:
        raise BadUsage(f"No service runs on {home}. Name the processes: dragoman drain PID.")
    return announced.pid


@contextmanager
def _opened(pid: int) -> Iterator[int]:
    """A descriptor of the process, which stays that of the process when its number is used
    again."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as exc:
        raise CommandFailure(f"There is no process {pid} ({exc.strerror}).") from exc
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _require_drainable(pid: int, number: signal.Signals, *, is_announced: bool) -> None:
    """The signal would end any program that does not handle it, and SIGTERM follows, which ends
    most others."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError as exc:
        raise CommandFailure(f"There is no process {pid} ({exc.strerror}).") from exc
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1], 16)
    is_ours = is_announced or starts_service_or_worker(command_line)
    if not (is_ours and caught >> (number - 1) & 1):
        raise CommandFailure(f"The process {pid} is no service or worker that can be drained.")


def starts_service_or_worker(command_line: bytes) -> bool:
    """Whether this command line, as proc(5) has it, is `dragoman serve` or `dragoman worker`."""
    interpreter, _, arguments = command_line.partition(b"\0")
    name = interpreter.rpartition(b"/")[2]
    return any(each in name for each in _INTERPRETERS) and _STARTED.match(arguments) is not None


def _has_ended(process: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(within_s * 1000))
