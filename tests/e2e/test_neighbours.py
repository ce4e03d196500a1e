"""A few seconds of what `make chaos` does for longer: an organization beside a hostile server, and
in quiet."""

from dataclasses import replace

import httpx
import pytest

from chaos import neighbours
from chaos.neighbours import Comparison, Times, beside, excess, percentile, reached


@pytest.mark.timeout(400)
@pytest.mark.requirement("S3")
def test_a_neighbour_is_served_beside_a_hostile_server_and_in_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_BEGIN_S", 60.0)  # the server is started, however long it takes
    with beside() as (stage, servers):
        assert len(servers) > 40
        [flood] = [server for server in servers if server.name == "flood of changes, stdio"]
        comparison = stage.compare(flood, rounds=1, calls=10, runs=1)
    assert [len(times.calls) for times in (comparison.quiet, comparison.hostile)] == [10, 10]
    assert [len(times.runs) for times in (comparison.quiet, comparison.hostile)] == [1, 1]
    assert comparison.acts > 0
    assert comparison.row(flood.name).startswith("| flood of changes, stdio")


@pytest.mark.timeout(400)
@pytest.mark.requirement("S3")
def test_a_server_that_the_neighbours_service_does_not_ask_is_no_attack() -> None:
    with beside() as (stage, servers):
        [flood] = [server for server in servers if server.name == "flood of changes, stdio"]
        comparison = stage.compare(replace(flood, tool="no_such_tool"), rounds=1, calls=1, runs=1)
    assert comparison.acts == 0


FAILED_THERE = "MCP tool execution failed: The call timed out after 1 seconds; it may have taken effect."
REFUSED_HERE = "MCP tool execution failed: MCP server not connected. It is tried again in 5 seconds."


def called(text: str) -> httpx.Response:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}], "isError": True}}
    return httpx.Response(200, json=answer)


@pytest.mark.parametrize(
    ("response", "was_reached"),
    [
        (called(FAILED_THERE), True),
        (called(REFUSED_HERE), False),
        (httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown"}}), False),
        (httpx.Response(200, json={"data": [{"description": "Nothing was sent."}]}), True),
        (httpx.Response(503, json={"detail": "The tools could not be listed: The server did not answer."}), True),
        (httpx.Response(503, json={"detail": "The server crashed too often and is in a cool-down."}), False),
        (httpx.Response(429, json={"detail": "Too many requests."}), False),
    ],
)
def test_only_what_its_server_was_asked_counts_as_an_attack(response: httpx.Response, was_reached: bool) -> None:
    assert reached(response) is was_reached


def compared(quiet: float, hostile: float) -> Comparison:
    return Comparison(quiet=Times(calls=[quiet] * 100), hostile=Times(calls=[hostile] * 100), acts=1, holds=0)


def test_only_a_hostile_server_that_exceeds_the_bound_each_time_does_not_hold() -> None:
    assert excess([compared(0.01, 0.03), compared(0.01, 0.02)]) is None
    assert excess([compared(0.01, 0.03), compared(0.01, 0.04)]) == pytest.approx(3.0)


def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile([1.0], 99)) == (100.0, 198.0, 1.0)
