"""A share of a core for processes, as a control group would give it: where two cores are all there
is, processes that are added would otherwise take from those that are measured.
`python -m benchmarks.shares PID SHARE` holds one process until its input ends."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.processes import ROOT

_LOOK_S = 0.002
_BURST_S = 0.01
"""CPU time that a process may have in hand."""


@contextmanager
def shares_of_a_core(pids: Sequence[int], share: float) -> Iterator[None]:
    """Hold each process to `share` of a core: one that has used more is stopped until it has earned
    it again."""
    holders = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.shares", str(pid), str(share)], cwd=ROOT, stdin=subprocess.PIPE
        )
        for pid in pids
    ]
    try:
        yield
    finally:
        for holder in holders:
            holder.communicate()


def cpu_s(pid: int) -> float:
    """CPU time of a process: of the threads that it has. 0 once it has ended."""
    used = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                used += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return used / 1e9


def _hold(pid: int, share: float) -> None:
    in_hand, used, at = _BURST_S, cpu_s(pid), time.monotonic()
    is_stopped = False
    try:
        while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
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


if __name__ == "__main__":
    _hold(int(sys.argv[1]), float(sys.argv[2]))
