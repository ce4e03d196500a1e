"""Rate limit for unsolicited messages of a server: a burst, then a steady rate; beyond it reading
pauses. Replies to calls are free. The rate bounds the share of the event loop per connection."""

import asyncio
from typing import Final

BURST: Final = 250.0
RATE: Final = 100.0
"""Messages per second after the burst; one takes up to a millisecond, with an answer over HTTP more."""
MESSAGE: Final = 1.0
"""Cost of a request, or of a notification delivered by a task."""
REPORT: Final = 0.05
"""Cost of progress or a log message of a call."""
NOISE: Final = 0.02
"""Cost of a line or an event that is not a message."""
LEAST_PAUSE_S: Final = 0.01
"""An event loop that woke for each of many cheap messages would do little else."""
_BYTES_PER_MESSAGE: Final = 16 * 1024


class Pace:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = BURST
        self._at = self._loop.time()

    def spend(self, cost: float, size: int = 0) -> None:
        """Charge for a message of `size` bytes."""
        now = self._loop.time()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - cost - size / _BYTES_PER_MESSAGE
        self._at = now

    @property
    def delay_s(self) -> float:
        """Seconds until reading may continue; 0 with budget left."""
        if self._left >= 0:
            return 0.0
        left_s = -self._left / RATE - (self._loop.time() - self._at)
        return max(left_s, LEAST_PAUSE_S) if left_s > 0 else 0.0

    async def wait(self) -> None:
        while (delay_s := self.delay_s) > 0:  # noqa: ASYNC110 (time passes, and others spend)
            await asyncio.sleep(delay_s)
