"""A share of a core for processes, as a control group would give it: where two cores are all there is, processes that are added
would otherwise take from those that are measured."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.002
_BURST_S = 0.01
"""CPU time that a process may have in hand."""


@contextmanager
def shares_of_a_core(pids: Sequence[int], share: float) -> Iterator[None]:
    """Hold each process to `share` of a core: one that has used more is stopped until it has earned it again."""
    ended = threading.Event()
    threads = [threading.Thread(target=_hold, args=(pid, share, ended)) for pid in pids]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _hold(pid: int, share: float, ended: threading.Event) -> None:
    in_hand, used, at = _BURST_S, cpu_s(pid), time.monotonic()
    is_stopped = False
    try:
        while not ended.wait(_LOOK_S):
            now, then_used = time.monotonic(), used
            used = cpu_s(pid)
            in_hand = min(in_hand + (now - at) * share, _BURST_S) - (used - then_used)
            at = now
            if is_stopped != (in_hand < 0):
                is_stopped = not is_stopped
                os.kill(pid, signal.SIGSTOP if is_stopped else signal.SIGCONT)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def cpu_s(pid: int) -> float:
    """CPU time of a process: of the threads that it has. 0 once it has ended."""
    used = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                used += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return used / 1e9
