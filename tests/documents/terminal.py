"""A shell on a terminal of 80 columns, as a reader has one: variables and directories stay from one
command to the next."""

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

COLUMNS, LINES = 80, 24
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>()][0-9A-B]?)")
_END = re.compile(rb"\x1e(\d+)\x1e")


class ReadersTerminal:
    """Commands run one after the other; a command that fails in the middle of several ends the
    shell."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory, self._environment = directory, environment

    def __enter__(self) -> Self:
        self._screen, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        os.close(screen)
        self._type("set -o pipefail; trap 'printf \"\\036%s\\036\" $?' EXIT")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was begun in the background ends with the shell."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()
        os.close(self._screen)

    def run(self, text: str, *, fails: bool = False) -> tuple[int, str]:
        """How it ends, and what is on the screen then. The first command that fails ends it, and
        the shell; unless it is said to fail."""
        mode = "+e" if fails else "-e"
        self._type(f"set {mode}; eval {shlex.quote(text)} </dev/null; printf '\\036%s\\036' $?; set +e")
        shown = b""
        while (end := _END.search(shown)) is None:
            shown += os.read(self._screen, 65536)
        return int(end[1]), _CONTROL.sub("", shown[: end.start()].decode()).replace("\r\n", "\n").replace("\r", "\n")

    def _type(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n".encode())
        self._shell.stdin.flush()
