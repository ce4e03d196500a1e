"""RunMemory: a worker claims no more runs than it has room for."""

import asyncio

import pytest

from application.runs.execution.run_memory import RunMemory, RunRoom
from application.system.memory_budget import MemoryBudget

pytestmark = pytest.mark.requirement("C6")


async def room_in(memory: RunMemory) -> RunRoom:
    room = await memory.room()
    assert room is not None
    return room


async def test_a_run_waits_until_transcripts_in_memory_leave_room_for_one_like_the_last() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await room_in(memory)
    first.read(900)
    second = asyncio.create_task(room_in(memory))
    await asyncio.sleep(0)
    assert not second.done()
    with first.hold:
        pass
    with (await second).hold:
        pass


async def test_runs_after_a_transcript_larger_than_the_budget_are_claimed_side_by_side() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await room_in(memory)
    first.read(2_000)
    others = [asyncio.create_task(room_in(memory)) for _ in range(8)]
    await asyncio.sleep(0)
    assert not any(other.done() for other in others), "it is in memory"
    with first.hold:
        pass
    for other in others:
        await other


async def test_what_waits_is_claimed_by_the_transcript_that_was_read_last() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    large, other = await room_in(memory), await room_in(memory)
    large.read(2_000)
    others = [asyncio.create_task(room_in(memory)) for _ in range(40)]
    await asyncio.sleep(0)
    other.read(16)
    large.hold.resize(0)
    await asyncio.sleep(0)
    assert all(waiting.done() for waiting in others)


@pytest.mark.requirement("F5")
async def test_a_called_run_waits_for_no_room_that_its_caller_holds() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    caller = await room_in(memory)
    caller.read(2_000)
    called = memory.room_beside_caller()
    assert called is not None
    called.read(500)
    other = asyncio.create_task(room_in(memory))
    with called.hold:
        await asyncio.sleep(0)
    assert not other.done()
    with caller.hold:
        pass
    with (await other).hold:
        pass
    memory.drain()
    assert memory.room_beside_caller() is None


async def test_a_worker_that_drains_claims_no_more_runs() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await room_in(memory)
    first.read(2_000)
    waiting = asyncio.create_task(memory.room())
    await asyncio.sleep(0)
    memory.drain()
    assert await waiting is None
    assert await memory.room() is None


async def test_a_transcript_holds_more_as_it_grows() -> None:
    budget = MemoryBudget(1_000)
    room = await room_in(RunMemory(budget))
    room.read(300)
    assert budget.has_room(0, 600)
    room.grown(850)
    assert not budget.has_room(0, 200)
