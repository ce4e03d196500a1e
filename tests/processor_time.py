"""A bound on processor time for tests of what hostile texts cost: wall clocks say nothing on a busy machine."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlow(Exception):
    """The bound is reached."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises TooSlow when this process has worked for longer, also from within a regular expression. Main thread only.

    The garbage collector rests meanwhile: it would add the cost of what earlier tests left, and what is
    raised in a callback of the collector is lost.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    collects = gc.isenabled()
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collects:
            gc.enable()
