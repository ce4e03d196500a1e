"""RunMemory: a worker claims no more runs than it has room for."""

import asyncio
from dataclasses import replace

import pytest

from application.runs.execution.run_memory import RunMemory
from application.system.memory_budget import MemoryBudget
from domain.ids import ToolCallId
from domain.threads.message import Content, FileContent, ImageContent, TextContent, ToolResultContent
from domain.threads.provider_items import ProviderItems
from tests.builders import a_message

pytestmark = pytest.mark.requirement("C6")


async def test_a_run_waits_until_transcripts_in_memory_leave_room_for_one_like_the_last() -> None:
    memory = RunMemory(MemoryBudget(1_000))
    first = await memory.room()
    first.read([a_message(text="x" * 600)])
    second = asyncio.create_task(memory.room())
    await asyncio.sleep(0)
    assert not second.done()
    with first.hold:
        pass
    with (await second).hold:
        pass


async def test_a_transcript_holds_more_as_it_grows() -> None:
    budget = MemoryBudget(1_000)
    room = await RunMemory(budget).room()
    transcript = [a_message(1, text="x" * 300)]
    room.read(transcript)
    assert budget.has_room(0, 600)
    transcript.append(a_message(2, text="x" * 500))
    room.grown(transcript)
    assert not budget.has_room(0, 200)


async def test_images_and_the_providers_items_are_counted_with_all_their_bytes() -> None:
    budget = MemoryBudget(100_000)
    room = await RunMemory(budget).room()
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
    room = await RunMemory(budget).room()
    room.read([a_message(content=(part,))])
    assert not budget.has_room(0, 20_000)
    assert budget.has_room(0, 10_000)
