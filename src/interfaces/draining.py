"""Draining: at SIGUSR1 a service or worker finishes what it began, and then stops by itself.
`dragoman drain` sends the signal."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

DRAIN_SIGNAL = signal.SIGUSR1


@contextmanager
def drained_by_signal(finish: Callable[[], Awaitable[None]], *, then: Callable[[], None]) -> Iterator[None]:
    """Within this context the signal starts `finish` once, and calls `then` when it has ended. A
    signal to stop does not wait for it."""
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    async def drain() -> None:
        logger.info("draining: runs in progress may finish; SIGTERM hands them over")
        try:
            await finish()
        except Exception:
            logger.exception("draining failed; the process stops")
        then()

    def begin() -> None:
        if not draining:
            draining.append(loop.create_task(drain(), name="drain"))

    loop.add_signal_handler(DRAIN_SIGNAL, begin)
    try:
        yield
    finally:
        # From now on the process stops: one more signal changes nothing.
        loop.add_signal_handler(DRAIN_SIGNAL, lambda: None)
        for task in draining:
            task.cancel()
