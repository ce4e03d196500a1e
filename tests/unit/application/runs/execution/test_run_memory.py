"""RunMemory: a worker claims no more runs than it has room for."""

import asyncio
from dataclasses import replace

import pytest

from application.runs.execution.run_memory import RunMemory, RunRoom
from application.system.memory_budget import MemoryBudget
from domain.ids import ToolCallId
from domain.threads.message import Content, FileContent, ImageContent, TextContent, ToolResultContent
from domain.threads.provider_items import ProviderItems
from tests.builders import a_message

pytestmark = pytest.mark.requirement("C6")


async def room_in(memory: RunMemory) -> RunRoom:
    room = await memory.room()
    assert room is not None
    return room


async def test_a_run_waits_until_transcripts_in_memory_leave_room_for_one_like_the_last() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await room_in(memory)
    first.read([a_message(text="x" * 880)])
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
    first.read([a_message(text="x" * 2_000)])
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
    large.read([a_message(text="x" * 2_000)])
    others = [asyncio.create_task(room_in(memory)) for _ in range(40)]
    await asyncio.sleep(0)
    other.read([a_message(text="")])
    large.hold.resize(0)
    await asyncio.sleep(0)
    assert all(waiting.done() for waiting in others)


async def test_a_worker_that_drains_claims_no_more_runs() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await room_in(memory)
    first.read([a_message(text="x" * 2_000)])
    waiting = asyncio.create_task(memory.room())
    await asyncio.sleep(0)
    memory.drain()
    assert await waiting is None
    assert await memory.room() is None


async def test_a_transcript_holds_more_as_it_grows() -> None:
    budget = MemoryBudget(1_000)
    room = await room_in(RunMemory(budget))
    transcript = [a_message(1, text="x" * 300)]
    room.read(transcript)
    assert budget.has_room(0, 600)
    transcript.append(a_message(2, text="x" * 500))
    room.grown(transcript)
    assert not budget.has_room(0, 200)


async def test_images_and_the_providers_items_are_counted_with_all_their_bytes() -> None:
    budget = MemoryBudget(100_000)
    room = await room_in(RunMemory(budget))
    picture = a_message(1, content=(ImageContent(media_type="image/png", data="A" * 40_000),))
    items = ProviderItems(origin="o", data=b"x" * 40_000)
    room.read([picture, replace(a_message(2, content=(TextContent(text="Hi."),)), items=items)])
    assert not budget.has_room(0, 20_000)
    assert budget.has_room(0, 5_000)


PICTURE = ImageContent(media_type="image/png", data="A" * 80_000)
REPORT = FileContent(media_type="application/zip", name="report.zip", data="A" * 80_000)


def a_result(*, images: tuple[ImageContent, ...] = (), files: tuple[FileContent, ...] = ()) -> ToolResultContent:
    return ToolResultContent(tool_id=ToolCallId("tc_1"), tool_name="report", result="", images=images, files=files)


@pytest.mark.parametrize("part", [PICTURE, REPORT, a_result(images=(PICTURE,)), a_result(files=(REPORT,))])
async def test_attachments_of_messages_and_of_tool_results_are_counted_with_all_their_bytes(part: Content) -> None:
    budget = MemoryBudget(100_000)
    room = await room_in(RunMemory(budget))
    room.read([a_message(content=(part,))])
    assert not budget.has_room(0, 20_000)
    assert budget.has_room(0, 10_000)
