"""A bound on processor time for tests of what hostile texts cost: wall clocks say nothing on a busy
machine."""

import gc
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

_FLOOR_S = 0.05
"""Processor time of `_floor_work` on an ordinary machine."""


class TooSlow(Exception):
    """The bound is reached."""


@cache
def slowness() -> float:
    """How many times longer than an ordinary machine this one takes, at least 1: a factor for
    bounds. Measured once.

    The shortest of three, without the garbage collector: what earlier tests left does not make the
    machine slow.
    """
    with _without_collector():
        return max(1.0, min(_floor_s() for _ in range(3)) / _FLOOR_S)


@contextmanager
def _without_collector() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _floor_s() -> float:
    began = time.thread_time()
    _floor_work()
    return time.thread_time() - began


def _floor_work() -> int:
    rows = [{"id": f"node{number}", "value": number, "names": [str(number)] * 4} for number in range(20_000)]
    return len({row["id"]: row for row in json.loads(json.dumps(rows))})


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises TooSlow when this process has worked for longer, also from within a regular
    expression. Main thread only.

    A slow machine has more time (`slowness`).
    The garbage collector rests meanwhile: it would add the cost of what earlier tests left, and
    what is raised in a callback of the collector is lost.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    bound_s = seconds * slowness()
    before = signal.signal(signal.SIGVTALRM, stop)
    with _without_collector():
        signal.setitimer(signal.ITIMER_VIRTUAL, bound_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
