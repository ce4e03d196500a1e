"""How much a server may say unasked: a burst, then a steady rate. Beyond that nothing more is read from it for a while.

Answers to calls cost nothing. The rate bounds the share of the event loop that one connection can take.
"""

import asyncio
from typing import Final

BURST: Final = 250.0
RATE: Final = 200.0
"""Messages a second after the burst; one takes up to a millisecond."""
MESSAGE: Final = 1.0
"""A request, or a notification that takes a task to deliver."""
REPORT: Final = 0.05
"""Progress or a log message of a call."""
NOISE: Final = 0.02
"""A line or an event that is no message."""
_BYTES_PER_MESSAGE: Final = 16 * 1024


class Pace:
    """The budget of one connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = BURST
        self._at = self._loop.time()

    def spend(self, cost: float, size: int = 0) -> None:
        """Something came, of `size` bytes."""
        now = self._loop.time()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - cost - size / _BYTES_PER_MESSAGE
        self._at = now

    @property
    def delay_s(self) -> float:
        """How long nothing more is to be read; 0 if there is some budget left."""
        if self._left >= 0:
            return 0.0
        return max(0.0, -self._left / RATE - (self._loop.time() - self._at))

    async def wait(self) -> None:
        """Return when more may be read."""
        while (delay_s := self.delay_s) > 0:  # noqa: ASYNC110 (time passes, and others spend)
            await asyncio.sleep(delay_s)
