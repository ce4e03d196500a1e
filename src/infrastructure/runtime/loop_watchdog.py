"""A thread that notices when the event loop is held, and logs what held it: files, lines and
functions, no values."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

logger = logging.getLogger(__name__)

HELD_S = 0.1
"""A loop that does not answer for this time is held."""
_ASK_EVERY_S = 0.05
_LOG_EVERY_S = 10.0
"""How often the same place is logged."""
_MAX_PLACES = 100
_MAX_FRAMES = 12
_SCHEDULER = Path("/proc/self/task")


@contextmanager
def watching_loop(
    *,
    held: Callable[[float], None] = lambda _: None,
    held_s: float = HELD_S,
    log_every_s: float = _LOG_EVERY_S,
    ask_every_s: float = _ASK_EVERY_S,
) -> Iterator[None]:
    """Watch the running event loop in this context. `held` gets the seconds of each hold, on the
    loop.

    Time in which the kernel did not schedule the loop's thread does not count.
    """
    watchdog = _Watchdog(
        asyncio.get_running_loop(), held=held, held_s=held_s, log_every_s=log_every_s, ask_every_s=ask_every_s
    )
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class _Watchdog(threading.Thread):
    """Asks the loop for a sign of life again and again."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        held: Callable[[float], None],
        held_s: float,
        log_every_s: float,
        ask_every_s: float,
    ) -> None:
        super().__init__(name="loop-watchdog", daemon=True)
        self._loop = loop
        self._watched = threading.get_ident()
        self._scheduler = _SCHEDULER / str(threading.get_native_id()) / "schedstat"
        self._held = held
        self._held_s = held_s
        self._log_every_s = log_every_s
        self._ask_every_s = ask_every_s
        self._logged: dict[str, float] = {}
        self._suppressed = 0
        self._answered = threading.Event()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the thread; it needs no answer of the loop for that."""
        self._stopped.set()
        self._answered.set()
        self.join()

    def run(self) -> None:
        """Ask until stopped; `start` calls this."""
        while not self._stopped.wait(self._ask_every_s):
            began, unscheduled = time.monotonic(), self._unscheduled_s()
            self._answered.clear()
            if self._stopped.is_set():  # `stop` may have set the event that was just cleared
                return
            try:
                self._loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:  # the loop has ended
                return
            if self._answered.wait(self._held_s):
                continue
            stack = _places(sys._current_frames().get(self._watched))  # its documented purpose
            self._answered.wait()
            if self._stopped.is_set():
                return
            seconds = time.monotonic() - began - (self._unscheduled_s() - unscheduled)
            if seconds >= self._held_s:
                self._report(seconds, stack)

    def _report(self, seconds: float, stack: list[str]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._held, seconds)
        except RuntimeError:
            return
        now, place = time.monotonic(), stack[-1] if stack else "unknown"
        if now - self._logged.get(place, -self._log_every_s) < self._log_every_s:
            self._suppressed += 1
            return
        if len(self._logged) >= _MAX_PLACES:
            self._logged.clear()
        self._logged[place] = now
        logger.warning(
            "the event loop was held",
            extra={
                "held_ms": round(seconds * 1000),
                "place": place,
                "stack": " < ".join(reversed(stack)),
                "suppressed": self._suppressed,
            },
        )
        self._suppressed = 0

    def _unscheduled_s(self) -> float:
        """How long the loop's thread has waited for a processor (Linux, schedstat); 0 where that is
        unknown."""
        try:
            return int(self._scheduler.read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0


def _places(frame: FrameType | None) -> list[str]:
    """The innermost frames, the innermost last: `file:line function`."""
    found: list[str] = []
    while frame is not None and len(found) < _MAX_FRAMES:
        code = frame.f_code
        found.append(f"{'/'.join(Path(code.co_filename).parts[-2:])}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return found[::-1]
