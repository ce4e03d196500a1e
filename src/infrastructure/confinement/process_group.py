"""A process and all its descendants: finding them, and bounds on their memory and number. Standard
library only."""

import os

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

NAMES = ("memory", "processes")
Process = tuple[int, bytes]
"""Process id and start time, which identify a process even after the id is reused."""


class GroupLimits:
    """`memory` in bytes (resident), `processes` in number; 0 for no limit."""

    def __init__(self) -> None:
        self.memory = 0
        self.processes = 0

    def set(self, name: str, value: int) -> bool:
        """False for an unknown name."""
        if name not in NAMES:
            return False
        setattr(self, name, value)
        return True

    def __bool__(self) -> bool:
        return bool(self.memory or self.processes)

    def excess(self, found: list[int]) -> str | None:
        """What these processes have too much of together, as a sentence."""
        if self.processes and len(found) > self.processes:
            return f"more than {self.processes} processes"
        if self.memory and sum(map(_resident, found)) > self.memory:
            return f"more than {self.memory // 1024**2} MiB of memory"
        return None


def below(root: int) -> list[int]:
    """The processes below `root`, from the kernel's lists of children: far cheaper than reading all
    of /proc."""
    found: list[int] = []
    parents = [root]
    while parents:
        parent = parents.pop()
        for thread in _names(f"/proc/{parent}/task"):
            try:
                with open(f"/proc/{parent}/task/{thread}/children", "rb") as file:
                    children = [int(pid) for pid in file.read().split()]
            except OSError:
                continue
            found += children
            parents += children
    return found


def descendants(root: int) -> set[Process]:
    """Every living process below root, by the parent ids in /proc, in any session or process
    group."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                # The command name, in parentheses, may hold any character: fields count from the
                # last parenthesis.
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append((int(name), fields[19]))
    found: set[Process] = set()
    parents = [root]
    while parents:
        below = children.get(parents.pop(), [])
        found.update(below)
        parents.extend(pid for pid, _ in below)
    return found


def children(parent: int) -> list[int]:
    """The direct children of a process with one thread."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def send(process: Process, number: int) -> bool | None:
    """Send a signal: True if sent, None if the process is gone, False without permission."""
    try:
        os.kill(process[0], number)
    except ProcessLookupError:
        return None
    except PermissionError:
        return False
    return True


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
