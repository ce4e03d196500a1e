"""Processes as /proc shows them, and bounded waiting for what nobody announces to a test."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Process:
    """Process id and start time: together they name one process, also after the id is used
    again."""

    pid: int
    started: bytes


def living() -> dict[Process, int]:
    """Every process that is no zombie, with its parent's id."""
    found: dict[Process, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            found[Process(int(entry.name), fields[19])] = int(fields[1])
    return found


def descendants(pid: int) -> set[Process]:
    """All living processes below `pid`."""
    parents = living()
    below: set[Process] = set()
    fresh = {pid}
    while fresh:
        children = {process for process, parent in parents.items() if parent in fresh} - below
        below |= children
        fresh = {child.pid for child in children}
    return below


def command_line(pid: int) -> str:
    """As it was started; empty once the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def environment_of(pid: int) -> str:
    """As it was started; empty once the process is gone."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"\n").decode(errors="replace")
    except OSError:
        return ""


def carrying(marker: str) -> set[Process]:
    """All living processes with `marker` in their command line."""
    return {process for process in living() if marker in command_line(process.pid)}


def resident_bytes(pid: int, *, peak: bool = False) -> int:
    """Memory in use, or the most there ever was."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def until(condition: Callable[[], object], patience_s: float = PATIENCE_S, what: str = "") -> None:
    """Wait for something outside this process. Fails after `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s} s in vain for {what or condition}"
        time.sleep(0.01)
