"""How many lines of one kind are written, and what is said of the others."""

import asyncio

from pytest_mock import MockerFixture

from interfaces.http.line_budget import LineBudget


class Reports:
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.seen: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    def __call__(self, kind: str, count: int) -> None:
        self.seen.put_nowait((kind, count))


async def test_lines_beyond_the_budget_are_counted_and_reported_once_when_the_window_is_over(
    mocker: MockerFixture,
) -> None:
    reports, loop = Reports(), asyncio.get_running_loop()
    budget = LineBudget(lines=3, window_s=0.05, report=reports)

    stopped = mocker.patch.object(loop, "time", return_value=loop.time())
    assert [budget.admits("401") for _ in range(100)] == [True] * 3 + [False] * 97
    mocker.stop(stopped)
    assert await asyncio.wait_for(reports.seen.get(), 60) == ("401", 97)
    assert budget.admits("401"), "a new window has begun"


async def test_a_flood_of_one_kind_suppresses_no_line_of_another() -> None:
    budget = LineBudget(lines=1, window_s=60, report=Reports())
    assert [budget.admits("401"), budget.admits("401"), budget.admits("500")] == [True, False, True]
