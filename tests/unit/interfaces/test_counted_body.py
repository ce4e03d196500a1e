"""Bodies that arrive while others are in memory."""

from collections.abc import Iterable
from typing import cast

import pytest
from litestar.types import HTTPReceiveMessage, Receive

from application.system.memory_budget import MemoryBudget
from domain.errors import ErrorKind, ServiceError
from interfaces.counted_body import counted_body

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
        receive = counted_body(parts(400, 400), hold)
        assert await read(receive, range(1)) == 400
        assert other.grow(900)
        other.resize(0)
        assert await read(receive, range(1)) == 400
        assert not other.grow(300)


async def test_a_body_without_room_is_refused_with_the_time_to_try_again() -> None:
    budget = MemoryBudget(1_000)
    with await budget.hold(lambda: 900), budget.open() as hold:
        with pytest.raises(ServiceError) as raised:
            await read(counted_body(parts(200), hold), range(1))
        error = raised.value
        assert (error.code, error.kind) == ("too_much_in_progress", ErrorKind.UNAVAILABLE)
        assert error.extra == {"retry_after_s": "1"}
    assert budget.has_room(0, 10_000)


async def test_the_end_of_a_connection_is_passed_on() -> None:
    async def receive() -> HTTPReceiveMessage:
        return cast(HTTPReceiveMessage, {"type": "http.disconnect"})

    with MemoryBudget(1).open() as hold:
        assert (await counted_body(receive, hold)())["type"] == "http.disconnect"
