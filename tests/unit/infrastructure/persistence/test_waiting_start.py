"""Waiting for the database at the start of a process."""

import logging

import pytest

from domain.errors import ServiceError, invalid
from infrastructure.persistence.engine.database import StorageAway
from infrastructure.persistence.engine.waiting_start import once_available
from tests.refusals import refused


class Step:
    """Fails as told, then answers."""

    def __init__(self, *failures: ServiceError) -> None:
        self._failures = list(failures)
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        return "done"


@pytest.mark.requirement("E7")
async def test_a_step_is_tried_again_until_storage_answers_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    step = Step(StorageAway(), StorageAway(), StorageAway())
    with caplog.at_level(logging.INFO):
        assert await once_available(step, within_s=60, first_pause_s=0.001) == "done"
    assert step.tries == 4
    assert [record.message for record in caplog.records] == ["waiting for the database", "the database is available"]


@pytest.mark.requirement("E7")
async def test_the_wait_is_bounded() -> None:
    step = Step(*[StorageAway() for _ in range(1_000)])
    with refused("storage_unavailable"):
        await once_available(step, within_s=0.05, first_pause_s=0.001)
    assert 1 < step.tries < 1_000


async def test_without_time_the_first_failure_counts() -> None:
    step = Step(StorageAway())
    with refused("storage_unavailable"):
        await once_available(step, within_s=0)
    assert step.tries == 1


async def test_another_error_is_raised_at_once() -> None:
    step = Step(invalid("worker_needs_postgresql", "No."))
    with refused("worker_needs_postgresql"):
        await once_available(step, within_s=60)
    assert step.tries == 1
