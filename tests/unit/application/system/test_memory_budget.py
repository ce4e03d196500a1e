"""MemoryBudget: who holds how much, and who waits."""

import asyncio

import pytest

from application.system.memory_budget import MemoryBudget

pytestmark = pytest.mark.requirement("C6")


async def test_what_fits_is_held_and_what_does_not_waits_in_order() -> None:
    budget = MemoryBudget(100)
    first = await budget.hold(lambda: 60)
    second = asyncio.create_task(budget.hold(lambda: 60))
    third = asyncio.create_task(budget.hold(lambda: 10))
    await asyncio.sleep(0)
    assert not second.done()
    assert not third.done(), "it would fit, but came later"
    first.resize(30)
    assert [await second, await third]
    assert not budget.has_room(0, 1)


async def test_a_hold_alone_is_admitted_whatever_its_size() -> None:
    budget = MemoryBudget(100)
    with await budget.hold(lambda: 1_000):
        assert not budget.has_room(0, 1)
    assert budget.has_room(0, 1_000)


async def test_a_hold_grows_while_there_is_room() -> None:
    budget = MemoryBudget(100)
    with budget.open() as hold, budget.open() as other:
        assert hold.grow(90)
        assert other.grow(10)
        assert not other.grow(11)
        assert not hold.grow(91)
        hold.resize(0)
        assert other.grow(1_000), "it is alone"


async def test_what_waits_is_admitted_by_the_size_that_it_then_has() -> None:
    budget, sizes = MemoryBudget(100), [90]
    first = await budget.hold(lambda: 60)
    second = asyncio.create_task(budget.hold(lambda: sizes[-1]))
    await asyncio.sleep(0)
    sizes.append(40)
    first.resize(50)
    with await second:
        assert not budget.has_room(0, 11)
        assert budget.has_room(0, 10)


async def test_a_hold_of_nothing_has_room_whatever_others_hold() -> None:
    budget = MemoryBudget(100)
    with await budget.hold(lambda: 1_000), await budget.hold(lambda: 0) as nothing:
        assert not nothing.grow(1)


async def test_nothing_is_alone_beside_settled_holds_of_more_than_the_limit() -> None:
    budget = MemoryBudget(100)
    with budget.open() as one, budget.open() as another:
        one.settle(100)
        assert budget.has_room(0, 1_000)
        another.settle(1)
        assert not budget.has_room(0, 1_000)
        one.settle(0)
        assert budget.has_room(0, 99)


async def test_what_gives_up_waiting_leaves_its_place() -> None:
    budget = MemoryBudget(100)
    first = await budget.hold(lambda: 100)
    second, third = (asyncio.create_task(budget.hold(lambda: 100)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    first.resize(0)
    with await third:
        assert second.cancelled()
        assert not budget.has_room(0, 1)


async def test_what_is_cancelled_once_it_is_admitted_holds_nothing() -> None:
    budget = MemoryBudget(100)
    first = await budget.hold(lambda: 100)
    second = asyncio.create_task(budget.hold(lambda: 100))
    await asyncio.sleep(0)
    first.resize(0)  # admits it, before it goes on
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert budget.has_room(0, 1_000)
