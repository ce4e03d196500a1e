"""A control group (version 2) for each started process with all that it starts: the kernel holds
its memory and its number of tasks, and ends everything in it. Below a group that the service was
given (`given_group.py`).

Standard library only. Made by the launcher, entered by the process before it is confined, ended by
the launcher, removed by the service.
"""

import os
import time

STARTED = "started-"
OPTION = "--cgroup"
_TASKS_PER_PROCESS = 16
"""The kernel counts threads."""
_ATTEMPTS = 100
_PAUSE_S = 0.02


class ControlGroup:
    """Of one process. 0 is no limit. Raises OSError if the kernel does not give it."""

    def __init__(self, path: str, *, memory: int, processes: int) -> None:
        self._path = path
        self._memory = memory
        os.mkdir(path, 0o755)
        try:
            if processes:
                _write(path, "pids.max", str(processes * _TASKS_PER_PROCESS))
            if memory:
                _write(path, "memory.max", str(memory))
            for name, text in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                if memory and os.path.exists(f"{path}/{name}"):
                    _write(path, name, text)
            # Opened outside of namespaces, in which these files are read-only.
            self._processes = _opened(path, "cgroup.procs")
            self._kill = _opened(path, "cgroup.kill")
        except OSError:
            os.rmdir(path)
            raise

    def enter(self) -> None:
        """Put this process into the group."""
        os.write(self._processes, b"0")

    def excess(self) -> str | None:
        """What the kernel ended the process for, as a sentence."""
        try:
            with open(f"{self._path}/memory.events", encoding="ascii") as file:
                events = dict(line.split() for line in file)
        except (OSError, ValueError):
            return None
        if events.get("oom_kill", "0") == "0":
            return None
        return f"more than {self._memory // 1024**2} MiB of memory"

    def end(self) -> None:
        """End all that is left in the group."""
        os.write(self._kill, b"1")


def end_group(path: str) -> bool:
    """End all processes of a group at once, and remove it; whether it is gone. Waits for that for
    two seconds."""
    for _ in range(_ATTEMPTS):
        try:
            _write(path, "cgroup.kill", "1")
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:  # its processes have not ended yet
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def with_group(options: "tuple[str, ...]", mark: str) -> "tuple[tuple[str, ...], str | None]":
    """The launcher's options with the group of a process with this mark, below the group that they
    name; and the group."""
    if OPTION not in options:
        return options, None
    place = options.index(OPTION) + 1
    group = f"{options[place]}/{STARTED}{mark.replace(':', '-')}"
    return (*options[:place], group, *options[place + 1 :]), group


def _write(path: str, name: str, text: str) -> None:
    fd = _opened(path, name)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _opened(path: str, name: str) -> int:
    return os.open(f"{path}/{name}", os.O_WRONLY | os.O_CREAT, 0o600)
