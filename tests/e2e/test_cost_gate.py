"""The hot paths are no dearer than benchmarks/gate.json says: instructions, C calls and statements, counted in a real service."""

import json

import pytest

from benchmarks import gate
from tests.completeness import beyond

BEFORE: gate.Costs = {"call": {"instructions": 1_000, "statements": 3}}


@pytest.fixture(scope="module")
def costs() -> gate.Costs:
    return gate.measured()


def test_calls_and_turns_execute_no_more_than_is_written_down(costs: gate.Costs) -> None:
    written = gate.read()
    if written is None:
        pytest.skip(beyond(f"no figures for Python {gate.PYTHON}, whose instructions are not those of other versions"))
    found = gate.findings(costs, written)
    assert not found, "\n".join([*found, "If that is meant: .venv/bin/python -m benchmarks.gate --write"])


def test_a_call_that_executes_a_fifth_more_is_found(costs: gate.Costs) -> None:
    """The same service, with each call decided more often: about a third of what a call executes."""
    dearer = gate.measured(dearer=20, with_runs=False)
    call = {"gateway call": costs["gateway call"]}
    assert gate.findings(dearer, call), f"{dearer} beside {call}"
    assert gate.findings(call, call) == []


@pytest.mark.parametrize(
    ("now", "is_found"),
    [
        ({"instructions": 1_200, "statements": 3}, False),
        ({"instructions": 1_201, "statements": 3}, True),
        ({"instructions": 1_000, "statements": 4}, False),
        ({"instructions": 1_000, "statements": 5}, True),
        ({"instructions": 800, "statements": 3}, False),
        ({"instructions": 799, "statements": 3}, True),
    ],
    ids=json.dumps,
)
def test_more_or_less_than_a_fifth_of_difference_is_found(now: dict[str, int], is_found: bool) -> None:
    assert bool(gate.findings({"call": now}, BEFORE)) is is_found


def test_what_is_only_measured_or_only_written_is_found() -> None:
    assert gate.findings({"call": BEFORE["call"], "turn": BEFORE["call"]}, BEFORE)
    assert gate.findings({}, BEFORE)
