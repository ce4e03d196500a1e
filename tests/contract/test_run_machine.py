"""Clients, workers, crashes and time in any order: what DESIGN says of runs holds after every act,
and no run is stuck.

`DRAGOMAN_DEEP_STORIES=N` plays N times as many stories, longer ones, others each time (`make chaos`
does).
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.run_machine import RunMachine
from tests.contract.stores import Leg

DEEP = int(os.environ.get("DRAGOMAN_DEEP_STORIES", "0"))
STORIES = {"memory": 70, "sqlite": 12}
"""By backend; of the others a few."""


@pytest.mark.timeout(3600 if DEEP else 300)
@pytest.mark.requirement("E2", "E3", "E4", "E5", "A12", "C3", "D5")
def test_the_invariants_of_runs_hold_in_any_order_of_acts(leg: Leg, request: pytest.FixtureRequest) -> None:
    backend = leg

    class Machine(RunMachine):
        leg = backend

    name = request.node.callspec.params["leg"]
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=STORIES.get(name, 3) * max(1, DEEP),
            stateful_step_count=100 if DEEP else 40,
            derandomize=not DEEP,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
