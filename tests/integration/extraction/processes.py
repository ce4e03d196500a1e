"""Finding the processes that a test started."""

import os
from pathlib import Path


def processes_below(name: str) -> list[int]:
    """All descendants of this process with `name` in their command line."""
    found: list[int] = []
    parents = [os.getpid()]
    while parents:
        for task in Path(f"/proc/{parents.pop()}/task").glob("*/children"):
            for pid in _children(task):
                parents.append(pid)
                if name.encode() in _command(pid):
                    found.append(pid)
    return found


def _children(task: Path) -> list[int]:
    try:
        return [int(pid) for pid in task.read_text().split()]
    except OSError:  # it has just ended
        return []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
