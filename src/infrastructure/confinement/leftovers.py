"""Finds processes of started servers that outlived their launcher, by a mark in the environment
that they inherit, and ends them.

Needed where no namespace ends them: after a launcher was killed, or stopped, from outside. A
confined server cannot signal its launcher.
"""

import os
import signal
from collections.abc import Callable
from itertools import count

MARK = "DRAGOMAN_STARTED_BY"
_PREFIX = f"{MARK}=".encode()
_ROUNDS = 10
_MOST_DIGITS = 10
_launches = count(1)


def new_mark() -> dict[str, str]:
    """The variable for a launcher: our process id, its start time, and a number."""
    return {MARK: f"{os.getpid()}:{_started(os.getpid())}:{next(_launches)}"}


def end_marked(mark: dict[str, str]) -> None:
    """End everything with this mark."""
    _end(lambda value: value == mark[MARK])


def end_leftovers() -> int:
    """End what processes that are gone have started; returns how many. Blocks for reading /proc."""
    return _end(is_left)


def is_left(value: str) -> bool:
    """Whether a mark is that of a process that is gone."""
    pid, _, rest = value.partition(":")
    started = rest.partition(":")[0]
    return pid.isascii() and pid.isdecimal() and len(pid) <= _MOST_DIGITS and _started(int(pid)) != started


def _end(is_meant: Callable[[str], bool]) -> int:
    """Several rounds, since one that is found may have started others meanwhile."""
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid in _processes() if (value := _mark_of(pid)) is not None and is_meant(value)]
        if not found:
            break
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        ended.update(found)
    return len(ended)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _mark_of(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    return next((line[len(_PREFIX) :].decode(errors="replace") for line in variables if line.startswith(_PREFIX)), None)


def _started(pid: int) -> str:
    """The start time, in the kernel's clock ticks; empty for no process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""
