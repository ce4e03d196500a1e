"""Work that many want at once is done once, whoever leaves."""

import asyncio

import pytest

from application.system.shared_work import SharedWork


class Reads:
    """Counted work that waits for `answer`."""

    def __init__(self) -> None:
        self.count = 0
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> str:
        self.count += 1
        return await asyncio.shield(self.answer)


async def test_those_who_want_the_same_at_once_share_one_piece_of_work() -> None:
    shared, reads = SharedWork[str, str](name="reads"), Reads()
    waiting = [asyncio.create_task(shared.result("a", reads)) for _ in range(3)]
    other = asyncio.create_task(shared.result("b", reads))
    await asyncio.sleep(0)
    reads.answer.set_result("said")
    assert await asyncio.gather(*waiting, other) == ["said"] * 4
    assert reads.count == 2


async def test_work_that_ended_is_done_again_for_the_next_one() -> None:
    shared, reads = SharedWork[str, str](name="reads"), Reads()
    reads.answer.set_result("said")
    assert [await shared.result("a", reads) for _ in range(2)] == ["said", "said"]
    assert reads.count == 2


async def test_all_who_wait_get_the_error_of_the_work() -> None:
    shared, reads = SharedWork[str, str](name="reads"), Reads()
    waiting = [asyncio.create_task(shared.result("a", reads)) for _ in range(2)]
    await asyncio.sleep(0)
    reads.answer.set_exception(LookupError("away"))
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(each) for each in ended] == ["away", "away"]


async def test_a_waiter_that_leaves_does_not_stop_the_work() -> None:
    shared, reads = SharedWork[str, str](name="reads"), Reads()
    first, second = (asyncio.create_task(shared.result("a", reads)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    reads.answer.set_result("said")
    assert await second == "said"


async def test_closing_stops_what_is_under_way() -> None:
    shared, reads = SharedWork[str, str](name="reads"), Reads()
    waiting = asyncio.create_task(shared.result("a", reads))
    await asyncio.sleep(0)
    await shared.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
