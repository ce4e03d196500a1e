"""Bound on log lines of one kind, so that a flood of requests does not flood the log."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Window:
    ends_at: float
    lines: int = 0


class LineBudget:
    """Admits `lines` of each kind per `window_s` seconds. After a window with more, `report`
    receives the kind and the number suppressed. Kinds are few: each active kind has a window and
    a timer."""

    def __init__(self, *, lines: int, window_s: float, report: Callable[[str, int], None]) -> None:
        self._lines = lines
        self._window_s = window_s
        self._report = report
        self._windows: dict[str, _Window] = {}

    def admits(self, kind: str) -> bool:
        """Whether one more line of this kind is written. Must be called in the event loop."""
        loop = asyncio.get_running_loop()
        window = self._windows.get(kind)
        if window is not None and window.ends_at <= loop.time():  # its timer is late, or belongs to a closed loop
            self._close(kind, window)
            window = None
        if window is None:
            window = self._windows[kind] = _Window(ends_at=loop.time() + self._window_s)
            loop.call_later(self._window_s, self._close, kind, window)
        window.lines += 1
        return window.lines <= self._lines

    def _close(self, kind: str, window: _Window) -> None:
        if self._windows.get(kind) is not window:
            return
        del self._windows[kind]
        if window.lines > self._lines:
            self._report(kind, window.lines - self._lines)
