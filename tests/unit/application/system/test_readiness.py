"""What a process says of its parts."""

import asyncio
import logging
from dataclasses import dataclass

import pytest

from application.system.readiness import Obstacle, ProcessReadiness

AWAY = Obstacle(part="database", detail="away")


@dataclass(slots=True)
class Storage:
    found: tuple[Obstacle, ...] = ()

    async def problems(self) -> tuple[Obstacle, ...]:
        return self.found


@dataclass(slots=True)
class Queue:
    attended: bool = True


def a_loop(name: str) -> "asyncio.Task[None]":
    async def forever() -> None:
        await asyncio.Event().wait()

    return asyncio.create_task(forever(), name=name)


async def parts(readiness: ProcessReadiness) -> list[str]:
    return [obstacle.part for obstacle in await readiness.problems()]


@pytest.mark.requirement("G2")
async def test_a_process_that_only_answers_needs_its_database_and_no_consumer_of_the_queue() -> None:
    storage = Storage()
    readiness = ProcessReadiness(storage=storage, queue=Queue(attended=False))
    assert await parts(readiness) == []
    storage.found = (AWAY,)
    assert await readiness.problems() == (AWAY,)


@pytest.mark.requirement("G2")
async def test_a_worker_that_does_not_hear_of_runs_is_not_ready_until_it_does_again() -> None:
    queue, loop = Queue(attended=False), a_loop("leases")
    readiness = ProcessReadiness(storage=Storage(), queue=queue)
    readiness.works(loop)
    assert await parts(readiness) == ["queue"]
    queue.attended = True
    assert await parts(readiness) == []
    loop.cancel()


@pytest.mark.requirement("G2")
async def test_a_loop_of_the_worker_that_has_ended_is_named_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise ValueError("broken")

    alive, dead = a_loop("leases"), asyncio.create_task(failing(), name="timers")
    readiness = ProcessReadiness(storage=Storage((AWAY,)), queue=Queue())
    with caplog.at_level(logging.ERROR):
        readiness.works(alive, dead)
        await asyncio.wait((dead,))
        found = await readiness.problems()
    assert [obstacle.part for obstacle in found] == ["database", "worker"]
    assert "timers" in found[1].detail
    assert "leases" not in found[1].detail
    assert [record.__dict__["loop"] for record in caplog.records] == ["timers"]
    alive.cancel()


@pytest.mark.requirement("G2")
async def test_a_process_that_is_told_to_stop_says_only_that_and_does_not_ask_its_database() -> None:
    class Forbidden:
        async def problems(self) -> tuple[Obstacle, ...]:
            raise AssertionError("the database was asked")

    readiness = ProcessReadiness(storage=Forbidden(), queue=Queue())
    readiness.stop()
    assert await parts(readiness) == ["stopping"]
