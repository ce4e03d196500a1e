"""The bounded stream between a transport and the SDK: who waits for whom, and what nobody waits
for."""

import asyncio

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from pytest_mock import MockerFixture

from infrastructure.mcp.pace import BURST, LEAST_PAUSE_S, MESSAGE, NOISE, Pace
from infrastructure.mcp.transports.message_sink import AnswerWriter, MessageSink
from infrastructure.mcp.transports.stdio_pipes import MAX_ITEMS, MessageReader

pytestmark = pytest.mark.requirement("A5", "B3")


def ping(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))


def news() -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed"))


def answer(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=number, result={}))


async def soon(reader: MessageReader) -> SessionMessage | Exception | None:
    """The next item if there is one to be had now."""
    taking = asyncio.ensure_future(reader.receive())
    await asyncio.wait([taking], timeout=0.05)
    if taking.done():
        return taking.result()
    taking.cancel()
    return None


async def test_requests_are_taken_as_far_as_earlier_ones_are_answered() -> None:
    reader = MessageReader()
    reader.requests_at_a_time = 2
    for number in range(3):
        reader.put(ping(number))
    assert await soon(reader) is not None
    assert await soon(reader) is not None
    assert await soon(reader) is None
    reader.answered()
    assert await soon(reader) is not None


async def test_an_answer_that_is_written_or_cannot_be_makes_room_for_a_request() -> None:
    answered: list[bool] = []

    async def send(item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse) and item.message.id == 2:
            raise anyio.BrokenResourceError

    writer = AnswerWriter(MessageSink(send), lambda: answered.append(True))
    await writer.send(news())
    assert answered == []
    await writer.send(answer(1))
    with pytest.raises(anyio.BrokenResourceError):
        await writer.send(answer(2))
    assert answered == [True, True]


async def test_a_request_that_its_server_cancels_makes_room_too() -> None:
    reader = MessageReader()
    reader.requests_at_a_time = 1
    reader.put(ping(1))
    reader.put(ping(2))
    taken = await soon(reader)
    assert isinstance(taken, SessionMessage)
    assert taken.metadata is not None
    await taken.metadata.on_request_unanswered()  # type: ignore[union-attr, misc]
    assert await soon(reader) is not None


async def test_whoever_fills_a_full_reader_waits_until_something_is_taken() -> None:
    reader = MessageReader()
    for _ in range(MAX_ITEMS):
        reader.put(news())
    assert reader.is_full
    waiting = asyncio.ensure_future(reader.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await reader.receive()
    await asyncio.wait_for(waiting, 10)


async def test_a_few_large_items_fill_a_reader_too() -> None:
    reader = MessageReader(max_bytes=1_000)
    found = [reader.is_full]
    for _ in range(2):
        reader.put(news(), 600)
        found.append(reader.is_full)
    for _ in range(2):
        await reader.receive()
        found.append(reader.is_full)
    assert found == [False, False, True, True, False]


async def test_a_reader_that_leaves_lets_go_of_everything_and_of_whoever_waits() -> None:
    reader = MessageReader()
    for _ in range(MAX_ITEMS):
        reader.put(news())
    waiting = asyncio.ensure_future(reader.room())
    await asyncio.sleep(0)
    reader.close()
    await asyncio.wait_for(waiting, 10)
    reader.put(news())
    with pytest.raises(anyio.ClosedResourceError):
        await reader.receive()


async def test_requests_that_wait_are_dropped_with_the_connection() -> None:
    reader = MessageReader()
    reader.requests_at_a_time = 1
    reader.put(ping(1))
    reader.put(ping(2))
    await reader.receive()
    reader.end()
    with pytest.raises(anyio.EndOfStream):
        await reader.receive()


async def test_other_tasks_run_while_much_is_taken() -> None:
    reader = MessageReader()
    for _ in range(MAX_ITEMS):
        reader.put(news())
    beside = asyncio.ensure_future(asyncio.sleep(0))
    while not beside.done():
        await asyncio.wait_for(reader.receive(), 10)  # without the others' turn there would be an end of what there is


async def test_answers_to_calls_cost_a_server_nothing_and_all_else_does(mocker: MockerFixture) -> None:
    loop = asyncio.get_running_loop()
    mocker.patch.object(loop, "time", return_value=loop.time())
    reader = MessageReader()
    reader.tap = lambda item: isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse)
    for number in range(int(BURST) * 2):
        reader.put(answer(number), 10_000)
    assert reader.pace.delay_s == 0
    for number in range(int(BURST) + 100):
        reader.put(ping(number))
    assert reader.pace.delay_s > 0


async def test_a_budget_that_is_used_up_wakes_the_event_loop_for_many_cheap_messages_at_once(
    mocker: MockerFixture,
) -> None:
    loop = asyncio.get_running_loop()
    mocker.patch.object(loop, "time", return_value=loop.time())
    pace = Pace()
    pace.spend(BURST + NOISE)
    assert pace.delay_s == LEAST_PAUSE_S


async def test_a_budget_that_is_used_up_comes_back(mocker: MockerFixture) -> None:
    loop = asyncio.get_running_loop()
    stopped = mocker.patch.object(loop, "time", return_value=loop.time())
    pace = Pace()
    pace.spend(BURST + 4 * MESSAGE)
    assert 0 < pace.delay_s < 1
    mocker.stop(stopped)
    await asyncio.wait_for(pace.wait(), 60)
    assert pace.delay_s == 0
