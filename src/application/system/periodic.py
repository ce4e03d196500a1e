"""Periodic tasks of a process: the one loop that repeats them."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]


async def every(
    seconds: float,
    step: Callable[[], Awaitable[object]],
    *,
    task: str,
    first_after_s: float | None = None,
    jitter: float = 0.0,
    sleep: Sleep = asyncio.sleep,
    fraction: Callable[[], float] = random.random,  # chance, not secrecy
) -> None:
    """Wait, call `step`, and repeat until cancelled.

    The first wait is `first_after_s` if given. Each wait is prolonged by up to its share `jitter`, so that many processes
    do not act at once. A failure is logged with the name of the task; the next call comes as usual.
    """
    wait_s = seconds if first_after_s is None else first_after_s
    while True:
        await sleep(wait_s * (1 + jitter * fraction()))
        try:
            await step()
        except Exception:
            logger.exception("periodic task failed; it is tried again", extra={"task": task})
        wait_s = seconds
