"""Finding the processes that a test started."""

import os
from pathlib import Path


def processes_below(name: str) -> list[int]:
    """All descendants of this process with `name` in their command line."""
    found: list[int] = []
    parents = [os.getpid()]
    while parents:
        for pid in _children(parents.pop()):
            parents.append(pid)
            if name.encode() in _command(pid):
                found.append(pid)
    return found


def _children(parent: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(pid) for pid in task.read_text().split()]
    except OSError:  # it, or a thread of it, has just ended
        pass
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
