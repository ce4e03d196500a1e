"""together: results in order, and one error out of several waits."""

import asyncio

from application.system.together import together
from tests.refusals import refused, storage_away


async def test_results_have_the_order_of_the_waits() -> None:
    turn = asyncio.Event()

    async def last() -> str:
        await turn.wait()
        return "last to end"

    async def first() -> str:
        turn.set()
        return "first to end"

    assert await together([last(), first()]) == ["last to end", "first to end"]


async def test_an_error_is_raised_as_it_is_and_ends_the_other_waits() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def failing() -> None:
        raise storage_away()

    with refused("storage_unavailable"):
        await together([endless(), failing()])
    assert ended.is_set()
