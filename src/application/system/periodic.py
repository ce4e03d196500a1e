"""Periodic tasks of a process: the one loop that repeats them."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from domain.errors import is_storage_away

logger = logging.getLogger(__name__)

Wait = Callable[[float], Awaitable[object]]
"""Waits for the seconds, or until a signal."""


async def when_due(
    step: Callable[[], Awaitable[float]], *, task: str, retry_s: float, wait: Wait = asyncio.sleep
) -> None:
    """Call `step`, wait the seconds that it returns, and repeat until cancelled.

    A failure is logged with the name of the task, without a traceback if it is only that the
    database is away; the next call comes after `retry_s`.
    """
    while True:
        try:
            wait_s = await step()
        except Exception as error:
            wait_s = retry_s
            if is_storage_away(error):
                logger.warning("periodic task failed: the database is unavailable", extra={"task": task})
            else:
                logger.exception("periodic task failed; it will be retried", extra={"task": task})
        await wait(wait_s)


async def every(
    seconds: float,
    step: Callable[[], Awaitable[object]],
    *,
    task: str,
    first_after_s: float | None = None,
    retry_s: float | None = None,
    jitter: float = 0.0,
    wait: Wait = asyncio.sleep,
    fraction: Callable[[], float] = random.random,  # not for cryptography
) -> None:
    """Wait, call `step`, and repeat until cancelled.

    The first wait is `first_after_s`, that after a failure `retry_s`, if given. Each is prolonged
    by up to its share `jitter`, so that many processes do not act at once. Failures are logged as
    by `when_due`.
    """

    async def prolonged(wait_s: float) -> None:
        await wait(wait_s * (1 + jitter * fraction()))

    async def timed() -> float:
        await step()
        return seconds

    await prolonged(seconds if first_after_s is None else first_after_s)
    await when_due(timed, task=task, retry_s=seconds if retry_s is None else retry_s, wait=prolonged)
