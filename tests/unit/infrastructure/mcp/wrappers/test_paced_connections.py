"""How often servers and organizations are called: calls beyond their rates wait for their turn, or
fail at once."""

from dataclasses import replace

import pytest

from application.mcp.ports import McpFailureKind
from application.system.rates import LocalRates
from domain.ids import McpServerId
from domain.rate_limit import RateLimit
from infrastructure.mcp.wrappers.guarded_connections import CallLimits, guarded
from infrastructure.mcp.wrappers.paced_connections import PacedConnections
from tests.builders import ORG, OTHER_ORG, SERVER
from tests.doubles.surroundings import FixedClock
from tests.unit.infrastructure.mcp.wrappers.test_guarded_connections import (
    CALL,
    OTHER_SERVER,
    SCOPE,
    Tool,
    failed,
    server,
)


@pytest.fixture
def tool() -> Tool:
    return Tool()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


class HandSleep:
    """Sleeps as long as the clock is told to."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)


@pytest.mark.requirement("B10")
async def test_calls_beyond_the_rate_wait_for_their_turn_and_have_that_less_time(tool: Tool, clock: FixedClock) -> None:
    sleep = HandSleep(clock)
    paced = PacedConnections(tool.connections, rates=LocalRates(clock=clock), clock=clock, sleep=sleep)
    limited = server(rate_limit=RateLimit(calls=2, per_s=10))
    for _ in range(4):
        await paced.call_tool(limited, SCOPE, CALL)
    assert sleep.slept == [5.0, 5.0]
    assert [recorded.call.timeout_s for recorded in tool.connections.calls] == [30, 30, 25, 25]


@pytest.mark.requirement("B10")
async def test_a_call_whose_turn_comes_too_late_fails_at_once_and_takes_no_turn(tool: Tool, clock: FixedClock) -> None:
    paced = PacedConnections(tool.connections, rates=LocalRates(clock=clock), clock=clock, sleep=HandSleep(clock))
    limited, hasty = server(rate_limit=RateLimit(calls=1, per_s=10)), replace(CALL, timeout_s=4)
    await paced.call_tool(limited, SCOPE, CALL)
    for _ in range(3):
        failure = await failed(paced, limited, hasty)
        assert (failure.kind, failure.retry_after_s) == (McpFailureKind.BUSY, 10.0)
    clock.advance(10)
    await paced.call_tool(limited, SCOPE, hasty)
    assert tool.calls == 2


@pytest.mark.requirement("B10", "B15")
async def test_an_organization_s_calls_are_paced_over_all_its_servers_and_no_other_s(
    tool: Tool, clock: FixedClock
) -> None:
    sleep = HandSleep(clock)
    every = RateLimit(calls=2, per_s=10)
    paced = PacedConnections(
        tool.connections, rates=LocalRates(clock=clock), clock=clock, every_organization=every, sleep=sleep
    )
    one, two = server(), server("t", id=OTHER_SERVER)
    others = server("t", id=McpServerId("mcp_x"), organization_id=OTHER_ORG)
    for each in (one, two, others, others):
        await paced.call_tool(each, replace(SCOPE, organization_id=each.organization_id), CALL)
    assert sleep.slept == []
    for each in (one, two):
        await paced.call_tool(each, SCOPE, CALL)
    assert sleep.slept == [5.0, 5.0]
    failure = await failed(paced, one, replace(CALL, timeout_s=4))
    assert (failure.kind, failure.retry_after_s) == (McpFailureKind.BUSY, 5.0)
    assert failure.detail == (
        "The MCP servers of the organization, taken together, may be called 2 times per 10 seconds; "
        "the next call may go in 5 seconds. Nothing was sent."
    )
    await paced.forget(ORG, SERVER)  # the organization's rate outlives each of its servers
    assert (await failed(paced, one, replace(CALL, timeout_s=4))).kind is McpFailureKind.BUSY


@pytest.mark.requirement("B10")
async def test_a_server_s_own_rate_holds_beside_the_organization_s_and_takes_none_of_its_turns(
    tool: Tool, clock: FixedClock
) -> None:
    sleep = HandSleep(clock)
    every = RateLimit(calls=1, per_s=1)
    paced = PacedConnections(
        tool.connections, rates=LocalRates(clock=clock), clock=clock, every_organization=every, sleep=sleep
    )
    slow, free = server(rate_limit=RateLimit(calls=1, per_s=20)), server("t", id=OTHER_SERVER)
    await paced.call_tool(slow, SCOPE, CALL)
    assert (await failed(paced, slow, replace(CALL, timeout_s=10))).retry_after_s == 20.0
    clock.advance(1)
    await paced.call_tool(free, SCOPE, CALL)  # the refused call has cost the organization nothing
    await paced.call_tool(slow, SCOPE, CALL)
    assert sleep.slept == [19.0]
    assert [recorded.call.timeout_s for recorded in tool.connections.calls] == [30, 30, 11]


@pytest.mark.requirement("B10")
async def test_the_rate_of_organizations_is_among_the_limits_of_every_call(tool: Tool, clock: FixedClock) -> None:
    limits = CallLimits(organization_rate=RateLimit(calls=1, per_s=60))
    connections = guarded(tool.connections, rates=LocalRates(clock=clock), clock=clock, limits=limits)
    await connections.call_tool(server(), SCOPE, CALL)
    assert (await failed(connections, server("t", id=OTHER_SERVER))).kind is McpFailureKind.BUSY
    assert tool.calls == 1


async def test_a_changed_rate_holds_at_once_and_a_server_without_one_is_not_held_up(
    tool: Tool, clock: FixedClock
) -> None:
    sleep = HandSleep(clock)
    paced = PacedConnections(tool.connections, rates=LocalRates(clock=clock), clock=clock, sleep=sleep)
    await paced.call_tool(server(rate_limit=RateLimit(calls=1, per_s=10)), SCOPE, CALL)
    await paced.call_tool(server(rate_limit=RateLimit(calls=5, per_s=10)), SCOPE, CALL)
    for _ in range(10):
        await paced.call_tool(server(), SCOPE, CALL)
    assert sleep.slept == []
