"""Much work in slices."""

from itertools import repeat

import pytest
from pytest_mock import MockerFixture

from application.system.turns import SLICE_S, Turn, in_turns
from tests.slices import rests

pytestmark = pytest.mark.requirement("A5")


async def test_all_items_come_in_order() -> None:
    assert [item async for item in in_turns(range(1_000))] == list(range(1_000))


async def test_others_run_for_three_times_as_long_as_each_slice(mocker: MockerFixture) -> None:
    rest = rests(mocker, (number * SLICE_S * 2 for number in range(100)))
    assert [item async for item in in_turns("abc")] == ["a", "b", "c"]
    assert [call.args for call in rest.await_args_list] == [(pytest.approx(SLICE_S * 6),)] * 3


async def test_little_work_is_not_interrupted(mocker: MockerFixture) -> None:
    rest = rests(mocker, repeat(0.0))
    assert [item async for item in in_turns("abc")] == ["a", "b", "c"]
    rest.assert_not_awaited()


async def test_others_run_after_a_long_piece_and_not_after_short_ones(mocker: MockerFixture) -> None:
    rest = rests(mocker, [0.0, SLICE_S / 2, SLICE_S * 2, 1.0, 1.0 + SLICE_S / 2])
    turn = Turn()
    await turn.rest()
    rest.assert_not_awaited()
    await turn.rest()
    await turn.rest()
    assert [call.args for call in rest.await_args_list] == [(pytest.approx(SLICE_S * 6),)]
