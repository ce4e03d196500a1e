"""Work in slices, with a clock that a test makes up."""

from collections.abc import Iterable
from unittest.mock import AsyncMock

from pytest_mock import MockerFixture

from application.system import turns


def rests(mocker: MockerFixture, clock: Iterable[float]) -> AsyncMock:
    """The sleeps between slices, at these readings of the processor's clock, in seconds.

    Patched for `turns` alone: threads of earlier tests may sleep and read the clock too.
    """
    readings = iter(clock)
    mocker.patch.object(turns, "time").thread_time.side_effect = lambda: next(readings)
    sleep: AsyncMock = mocker.AsyncMock()
    mocker.patch.object(turns, "asyncio").sleep = sleep
    return sleep
