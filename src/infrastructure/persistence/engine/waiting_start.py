"""Waits for the database when a process starts: it may be starting too, or have no connection to
spare."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from domain.errors import ServiceError, is_storage_away

T = TypeVar("T")

logger = logging.getLogger(__name__)

_LAST_PAUSE_S = 5.0


async def once_available(step: Callable[[], Awaitable[T]], *, within_s: float, first_pause_s: float = 0.5) -> T:
    """The result of `step`, which is tried again while storage is unavailable, at most `within_s`
    seconds after it first was. A step that is tried again must find what it did before. Raises what
    `step` raises last."""
    loop = asyncio.get_running_loop()
    failed_at: float | None = None
    pause_s = first_pause_s
    while True:
        try:
            result = await step()
        except ServiceError as error:
            if not is_storage_away(error):
                raise
            if failed_at is None:
                failed_at = loop.time()
                logger.warning("waiting for the database", extra={"at_most_s": within_s})
            left_s = failed_at + within_s - loop.time()
            if left_s <= 0:
                raise
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _LAST_PAUSE_S)
        else:
            if failed_at is not None:
                logger.info("the database is available", extra={"waited_s": round(loop.time() - failed_at, 1)})
            return result
