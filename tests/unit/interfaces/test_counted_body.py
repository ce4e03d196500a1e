"""Bodies that arrive while others are in memory."""

import asyncio
from collections.abc import Iterable
from typing import cast

import pytest
from litestar.types import HTTPReceiveMessage, Receive

from application.system.memory_budget import Hold, MemoryBudget
from domain.errors import ErrorKind, ServiceError
from interfaces.counted_body import CountedBody

pytestmark = pytest.mark.requirement("C6")


def parts(*sizes: int) -> Receive:
    """A body of parts with these sizes."""
    left = iter(sizes)
    last = len(sizes)

    async def receive() -> HTTPReceiveMessage:
        nonlocal last
        last -= 1
        return cast(HTTPReceiveMessage, {"type": "http.request", "body": b"x" * next(left), "more_body": last > 0})

    return receive


def receiving(receive: Receive, hold: Hold) -> Receive:
    return cast(Receive, CountedBody(receive, hold).receive)


async def read(receive: Receive, times: Iterable[int]) -> int:
    size = 0
    for _ in times:
        message = await receive()
        assert message["type"] == "http.request"
        size += len(message["body"])
    return size


async def test_a_body_holds_its_bytes_while_it_arrives_and_more_once_it_is_decoded() -> None:
    budget = MemoryBudget(1_000)
    with budget.open() as hold, budget.open() as other:
        receive = receiving(parts(400, 400), hold)
        assert await read(receive, range(1)) == 400
        assert other.grow(900)
        other.resize(0)
        assert await read(receive, range(1)) == 400
        assert not other.grow(300)


async def test_a_body_without_room_is_refused_with_the_time_to_try_again() -> None:
    budget = MemoryBudget(1_000)
    with await budget.hold(lambda: 900), budget.open() as hold:
        with pytest.raises(ServiceError) as raised:
            await read(receiving(parts(200), hold), range(1))
        error = raised.value
        assert (error.code, error.kind) == ("too_much_in_progress", ErrorKind.UNAVAILABLE)
        assert error.extra == {"retry_after_s": "1"}
    assert budget.has_room(0, 10_000)


async def test_a_body_that_is_decoded_keeps_its_bytes_while_its_client_waits() -> None:
    budget, is_gone = MemoryBudget(1_000), asyncio.Event()
    arriving = parts(900)

    async def receive() -> HTTPReceiveMessage:
        if is_gone.is_set():
            return cast(HTTPReceiveMessage, {"type": "http.disconnect"})
        return cast(HTTPReceiveMessage, await arriving())

    with budget.open() as hold:
        body = CountedBody(cast(Receive, receive), hold)
        await body.receive()
        assert not budget.has_room(0, 200)
        is_gone.set()
        assert (await body.receive())["type"] == "http.disconnect"
        with budget.open() as other, budget.open() as third:
            assert other.grow(800)
            assert not third.grow(200), "900 // 8 are kept"
            other.resize(0)
            assert other.grow(5_000), "it is alone"


async def test_a_response_that_starts_ends_the_work_on_a_body_also_twice() -> None:
    budget = MemoryBudget(1_000)
    with budget.open() as hold:
        body = CountedBody(parts(1_600), hold)
        await body.receive()
        for _ in range(2):
            body.decoded()
        assert budget.has_room(0, 10_000)
        with budget.open() as other:
            other.resize(1)
            assert budget.has_room(0, 799)
            assert not budget.has_room(0, 800)
    assert budget.has_room(0, 10_000)


async def test_the_end_of_a_connection_is_passed_on() -> None:
    async def receive() -> HTTPReceiveMessage:
        return cast(HTTPReceiveMessage, {"type": "http.disconnect"})

    with MemoryBudget(1).open() as hold:
        assert (await CountedBody(receive, hold).receive())["type"] == "http.disconnect"
