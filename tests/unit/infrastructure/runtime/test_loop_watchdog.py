"""The watchdog of the event loop: it names what held the loop, once in a while, and nothing
else."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable

import pytest

from infrastructure.runtime.loop_watchdog import watching_loop

SECRET = "s3cret-value"
HOLD_S = 1.0
"""So long that the watchdog, a thread among others, comes to see it."""


def sleeping_culprit(value: str) -> None:
    time.sleep(HOLD_S)
    assert value


def working_culprit(value: str) -> None:
    hashlib.pbkdf2_hmac("sha256", value.encode(), b"salt", 1)
    until = time.thread_time() + HOLD_S
    while time.thread_time() < until:
        pass


async def held_by(culprit: Callable[[str], None], *, times: int = 1) -> list[float]:
    """Hold the loop; the seconds of each hold, as the watchdog saw it."""
    holds: asyncio.Queue[float] = asyncio.Queue()
    with watching_loop(held=holds.put_nowait, log_every_s=600.0):
        seen = []
        for _ in range(times):
            await asyncio.sleep(0.1)
            culprit(SECRET)
            seen.append(await asyncio.wait_for(holds.get(), 60))
    return seen


@pytest.mark.requirement("G2")
@pytest.mark.parametrize("culprit", [sleeping_culprit, working_culprit])
async def test_what_holds_the_loop_is_named_with_its_callers_and_no_values(
    culprit: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    [seen] = await held_by(culprit)

    [record] = [record for record in caplog.records if record.message == "the event loop was held"]
    assert (record.levelno, record.name) == (logging.WARNING, "infrastructure.runtime.loop_watchdog")
    assert culprit.__name__ in record.__dict__["place"]
    assert "runtime/test_loop_watchdog.py" in record.__dict__["place"]
    assert "held_by" in record.__dict__["stack"]
    assert record.__dict__["held_ms"] >= 200
    assert SECRET not in repr(record.__dict__)
    assert seen >= 0.2


@pytest.mark.requirement("G2")
async def test_the_same_place_is_logged_once_in_a_while_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    assert len(await held_by(sleeping_culprit, times=3)) == 3
    assert len([record for record in caplog.records if record.message == "the event loop was held"]) == 1


async def test_a_loop_that_waits_is_not_held(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[float] = []

    with watching_loop(held=seen.append, held_s=5.0):
        await asyncio.sleep(0.5)

    assert (seen, caplog.records) == ([], [])


async def test_it_ends_with_its_context_at_any_moment() -> None:
    for _ in range(300):
        with watching_loop(ask_every_s=0):
            await asyncio.sleep(0)
