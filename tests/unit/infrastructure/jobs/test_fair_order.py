"""The fair order of waiting runs: shares by weight, no credit for idle time, no larger share for
more agents."""

from itertools import count

import pytest

from domain.ids import RunId
from domain.runs.lane import Flow, Lane
from infrastructure.jobs.fair_order import FairOrder
from tests.builders import a_run_id

_NUMBERS = count(1)


def add(order: FairOrder, flow: Flow, runs: int) -> list[RunId]:
    added = [a_run_id(next(_NUMBERS)) for _ in range(runs)]
    for run_id in added:
        order.add(run_id, flow)
    return added


def taken(order: FairOrder, runs: int) -> list[RunId]:
    found = [order.take() for _ in range(runs)]
    return [run_id for run_id in found if run_id is not None]


@pytest.mark.requirement("K1")
def test_a_run_of_a_second_organization_is_next_however_many_of_the_first_wait() -> None:
    order = FairOrder()
    add(order, Flow(organization_id="a"), 1_000)
    taken(order, 500)
    [late] = add(order, Flow(organization_id="b"), 1)
    assert late in taken(order, 2)


@pytest.mark.requirement("K1")
def test_organizations_start_runs_by_their_weights() -> None:
    order = FairOrder()
    heavy = set(add(order, Flow(organization_id="heavy", weight=3), 300))
    add(order, Flow(organization_id="light"), 300)
    assert len(heavy & set(taken(order, 200))) == 150


@pytest.mark.requirement("K1")
def test_more_agents_and_lanes_give_an_organization_no_larger_share() -> None:
    order = FairOrder()
    sharded: set[RunId] = set()
    for number in range(50):
        for lane in Lane:
            sharded.update(add(order, Flow(organization_id="many", agent_id=f"agent {number}", lane=lane), 2))
    add(order, Flow(organization_id="one"), 200)
    assert len(sharded & set(taken(order, 200))) == 100


@pytest.mark.requirement("K1")
def test_agents_of_an_organization_share_its_starts_alike() -> None:
    order = FairOrder()
    few = set(add(order, Flow(organization_id="a", agent_id="flooded"), 500))
    add(order, Flow(organization_id="a", agent_id="other"), 100)
    assert len(few & set(taken(order, 100))) == 50


@pytest.mark.requirement("K1")
def test_lanes_are_weighted_so_that_batch_never_starves() -> None:
    order = FairOrder()
    lanes = {lane: set(add(order, Flow(organization_id="a", lane=lane), 1_000)) for lane in Lane}
    first = set(taken(order, 130))
    assert {lane: len(runs & first) for lane, runs in lanes.items()} == {
        Lane.INTERACTIVE: 90,
        Lane.NORMAL: 30,
        Lane.BATCH: 10,
    }


@pytest.mark.requirement("K1")
def test_an_organization_that_was_idle_has_saved_nothing() -> None:
    order = FairOrder()
    add(order, Flow(organization_id="busy"), 1_000)
    taken(order, 400)
    late = set(add(order, Flow(organization_id="idle so far"), 500))
    assert len(late & set(taken(order, 100))) == 50


@pytest.mark.requirement("K1")
def test_an_organization_that_always_has_one_run_waiting_is_not_always_next() -> None:
    order = FairOrder()
    add(order, Flow(organization_id="flood"), 200)
    trickle = set(add(order, Flow(organization_id="trickle"), 1))
    started = 0
    for _ in range(100):
        if order.take() in trickle:
            started += 1
            trickle.update(add(order, Flow(organization_id="trickle"), 1))
    assert started == 50


@pytest.mark.requirement("K1")
def test_a_spare_place_is_for_the_next_organization_without_a_taken_run() -> None:
    order = FairOrder()
    add(order, Flow(organization_id="flood"), 100)
    taken(order, 4)
    [first, second] = [add(order, Flow(organization_id=name), 2)[0] for name in ("b", "c")]
    assert [order.take(spare=True) for _ in range(3)] == [first, second, None]
    order.left(first)
    assert order.take(spare=True) is not None
    assert order.take(spare=True) is None


@pytest.mark.requirement("K1")
def test_a_run_in_a_spare_place_is_charged_and_takes_no_turn_of_others() -> None:
    order = FairOrder()
    flood = set(add(order, Flow(organization_id="flood"), 100))
    taken(order, 4)
    add(order, Flow(organization_id="other"), 100)
    assert order.take(spare=True) not in flood
    assert len(flood & set(taken(order, 21))) == 11


@pytest.mark.requirement("K1")
def test_spare_places_cost_two_turns_at_most() -> None:
    order = FairOrder()
    flood = set(add(order, Flow(organization_id="flood"), 100))
    taken(order, 4)
    add(order, Flow(organization_id="other"), 100)
    for _ in range(20):
        run_id = order.take(spare=True)
        assert run_id is not None
        order.left(run_id)
    assert [run_id in flood for run_id in taken(order, 4)] == [True, True, False, True]


@pytest.mark.requirement("K1")
def test_runs_of_one_agent_and_lane_start_in_order_of_arrival() -> None:
    order = FairOrder()
    added = add(order, Flow(organization_id="a"), 20)
    order.add(added[5], Flow(organization_id="a"))
    assert len(order) == 20
    assert taken(order, 30) == added
    assert len(order) == 0


@pytest.mark.requirement("K1")
def test_runs_that_ended_while_they_waited_cost_their_organization_nothing() -> None:
    order = FairOrder()
    ended = add(order, Flow(organization_id="a"), 1_000)
    add(order, Flow(organization_id="b"), 1_000)
    for run_id in ended:
        order.discard(run_id)
    order.discard(ended[0])
    [late] = add(order, Flow(organization_id="a"), 1)
    assert (len(order), late in taken(order, 2)) == (1_001, True)


def test_shares_without_waiting_runs_are_forgotten() -> None:
    order = FairOrder()
    for number in range(10_000):
        add(order, Flow(organization_id=f"org {number}", agent_id=f"agent {number}"), 1)
        taken(order, 1)
    assert len(order._all.shares) <= 1
    add(order, Flow(organization_id="stays"), 1_000)
    for number in range(1_000):
        add(order, Flow(organization_id=f"org {number}"), 1)
        taken(order, 2)
    assert len(order._all.shares) < 200


@pytest.mark.requirement("K2")
def test_an_organization_at_its_bound_waits_for_a_place_and_gains_nothing_by_waiting() -> None:
    order = FairOrder()
    full = add(order, Flow(organization_id="full", agent_id="a", max_running=1), 50)
    add(order, Flow(organization_id="other", agent_id="b"), 50)
    begun = taken(order, 21)
    [first] = set(full) & set(begun)
    order.left(first)
    assert len(set(full) & set(taken(order, 10))) == 1
    assert list(order.blocked()) == [full[2]]


@pytest.mark.requirement("K2")
def test_an_agent_at_its_bound_holds_up_no_other_one_in_any_lane() -> None:
    order = FairOrder()
    for lane in Lane:
        add(order, Flow(organization_id="a", agent_id="full", lane=lane, agent_max_running=2), 3)
        add(order, Flow(organization_id="a", agent_id="other", lane=lane), 3)
    assert len(taken(order, 18)) == 11
    assert order.take() is None


@pytest.mark.requirement("K2")
def test_workflow_runs_need_no_place_so_that_their_steps_find_one() -> None:
    order = FairOrder()
    add(order, Flow(organization_id="a", max_running=1), 3)
    add(order, Flow(organization_id="a", agent_id="step", max_running=1), 3)
    assert len(taken(order, 6)) == 4
