"""What is started comes after the service: it gets less processor time, and its memory is freed
first. Standard library only: the launcher uses it.

Where the kernel groups processes by session (sched(7), autogroups), a nice value holds among those
of a session only, and the session has one itself."""

import os
from collections.abc import Iterable

NICENESS = 5
OOM_SCORE = "500"
"""When memory runs out, the kernel ends servers before the service."""


def lower() -> None:
    """This process and its session."""
    os.nice(NICENESS)
    _lower_session(os.getpid())
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write(OOM_SCORE)
    except OSError:  # it is higher already
        return


class LoweredSessions:
    """Sessions that were lowered already. The kernel may refuse a change that follows another one
    within 0.1 s: then it is tried again at the next call."""

    def __init__(self) -> None:
        self._lowered: set[int] = set()

    def lower(self, processes: Iterable[int]) -> None:
        """The sessions of these processes."""
        sessions = {session: pid for pid in processes if (session := _session(pid))}
        self._lowered &= sessions.keys()
        for session in sessions.keys() - self._lowered:
            if _lower_session(sessions[session]):
                self._lowered.add(session)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _lower_session(pid: int) -> bool:
    """The session of a process; False if it was refused for now."""
    try:
        with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as group:
            group.write(str(NICENESS))
    except BlockingIOError:
        return False
    except OSError:  # this kernel has no such groups
        return True
    return True
