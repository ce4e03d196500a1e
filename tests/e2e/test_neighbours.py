"""A few seconds of what `make chaos` does for longer: an organization beside a hostile server, and in quiet."""

import pytest

from chaos.neighbours import Comparison, Times, beside, excess, percentile


@pytest.mark.requirement("S3")
def test_a_neighbour_is_served_beside_a_hostile_server_and_in_quiet() -> None:
    with beside() as (stage, servers):
        assert len(servers) > 40
        [flood] = [server for server in servers if server.name == "flood of changes, stdio"]
        comparison = stage.compare(flood, rounds=1, calls=10, runs=1)
    assert [len(times.calls) for times in (comparison.quiet, comparison.hostile)] == [10, 10]
    assert [len(times.runs) for times in (comparison.quiet, comparison.hostile)] == [1, 1]
    assert comparison.row(flood.name).startswith("| flood of changes, stdio")


def compared(quiet: float, hostile: float) -> Comparison:
    return Comparison(quiet=Times(calls=[quiet] * 100), hostile=Times(calls=[hostile] * 100), acts=1)


def test_only_a_hostile_server_that_exceeds_the_bound_each_time_does_not_hold() -> None:
    assert excess([compared(0.01, 0.03), compared(0.01, 0.02)]) is None
    assert excess([compared(0.01, 0.03), compared(0.01, 0.04)]) == pytest.approx(3.0)


def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile([1.0], 99)) == (100.0, 198.0, 1.0)
