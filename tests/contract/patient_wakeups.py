"""Wake-ups of processes on a machine that stands still for some seconds now and then."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from infrastructure.events import postgres_wakeups
from infrastructure.events.row_notifications import RowNotifications

PATIENCE_S = 60.0


@contextmanager
def patient() -> Iterator[None]:
    """Connections are not replaced while heartbeats are late: that wakes every listener."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_wakeups, "SILENCE_S", PATIENCE_S)
        yield


async def until_fresh(rows: RowNotifications) -> None:
    """Until a heartbeat has come back, so that notifications arrive: a start waits for a few
    seconds only."""
    async with asyncio.timeout(PATIENCE_S):
        while not rows.fresh():  # noqa: ASYNC110  # nobody announces it
            await asyncio.sleep(0.01)
