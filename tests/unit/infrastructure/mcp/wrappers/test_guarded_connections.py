"""The limits that a call passes before it reaches a server: places, breaker, rate; and what they
cost nobody else."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpReply,
    ServerState,
)
from application.system.rates import LocalRates
from domain.ids import McpServerId, UserId
from domain.mcp.breaker import BreakerSettings
from domain.mcp.server import Credentials, McpServer, McpServerConfig, McpServerKind
from domain.rate_limit import RateLimit
from domain.secrets.secret import SecretRef
from infrastructure.mcp.wrappers.bounded_connections import (
    MAX_WAITING,
    Bulkheads,
    OrganizationBoundConnections,
    ServerBoundConnections,
)
from infrastructure.mcp.wrappers.breaking_connections import CircuitBreakingConnections
from infrastructure.mcp.wrappers.guarded_connections import CallLimits, guarded
from tests.builders import ORG, OTHER_ORG, RUN, SERVER, a_server
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, Invocation, text_reply
from tests.doubles.surroundings import FixedClock

SCOPE = ConnectionScope(organization_id=ORG, run_id=RUN)
OTHER_SERVER = McpServerId("mcp_00000000000000000000000002")
CALL = McpCall(tool_name="tool", arguments={}, timeout_s=30)
SETTINGS = BreakerSettings(failures=3, first_pause_s=10, longest_pause_s=40)
FAULTS = [
    McpFailureKind.TIMEOUT,
    McpFailureKind.CONNECTION_LOST,
    McpFailureKind.NOT_CONNECTED,
    McpFailureKind.INVALID_REPLY,
]


def server(slug: str = "s", *, id: McpServerId = SERVER, organization_id: str = ORG, **settings: object) -> McpServer:
    config = McpServerConfig(slug=slug, kind=McpServerKind.CUSTOM, command="x", **settings)  # type: ignore[arg-type]
    return a_server(id, organization_id=ORG if organization_id == ORG else OTHER_ORG, config=config)


class Tool:
    """One tool of one server: it fails while `failure` is set, and holds its calls while `gate` is
    closed."""

    def __init__(self) -> None:
        self.failure: McpFailure | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.inside = 0
        self.most_inside = 0
        self.entered = asyncio.Event()
        self.connections = InMemoryMcpConnections(
            {slug: InMemoryMcpServer(tools={"tool": self.answer}) for slug in ("s", "t")}
        )

    async def answer(self, invocation: Invocation) -> McpReply:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.entered.set()
        try:
            await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            return text_reply("ok")
        finally:
            self.inside -= 1

    @property
    def calls(self) -> int:
        return len(self.connections.calls)


@pytest.fixture
def tool() -> Tool:
    return Tool()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


async def failed(connections: McpConnections, of: McpServer, call: McpCall = CALL) -> McpFailure:
    with pytest.raises(McpFailure) as raised:
        await connections.call_tool(of, SCOPE, call)
    return raised.value


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_server_that_fails_call_after_call_is_left_alone_and_calls_fail_at_once(
    tool: Tool, clock: FixedClock, kind: McpFailureKind
) -> None:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    tool.failure = McpFailure(kind, "No.")
    for _ in range(3):
        assert (await failed(breaking, server())).kind is kind
    clock.advance(4)
    failure = await failed(breaking, server())
    assert (failure.kind, failure.retry_after_s) == (McpFailureKind.NOT_CONNECTED, 6.0)
    assert failure.detail.endswith("It is tried again in 6 s.")
    assert tool.calls == 3
    status = breaking.status(server())
    assert status.state is ServerState.UNHEALTHY
    assert status.last_error == "The server failed 3 consecutive calls; its circuit breaker is open."


@pytest.mark.requirement("B10")
async def test_after_its_pause_one_call_is_let_through_and_its_answer_lets_the_others_follow(
    tool: Tool, clock: FixedClock
) -> None:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    tool.failure = McpFailure(McpFailureKind.TIMEOUT, "No.")
    for _ in range(3):
        await failed(breaking, server())
    clock.advance(10)
    assert breaking.status(server()).state is ServerState.CONNECTED
    tool.failure, calls_before = None, tool.calls
    tool.gate.clear()
    tool.entered.clear()
    probe = asyncio.create_task(breaking.call_tool(server(), SCOPE, CALL))
    await tool.entered.wait()
    assert (await failed(breaking, server())).retry_after_s == 0.0
    assert tool.calls == calls_before + 1
    tool.gate.set()
    await probe
    await breaking.call_tool(server(), SCOPE, CALL)


async def test_a_probe_that_is_given_up_is_none(tool: Tool, clock: FixedClock) -> None:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    tool.failure = McpFailure(McpFailureKind.TIMEOUT, "No.")
    for _ in range(3):
        await failed(breaking, server())
    clock.advance(10)
    tool.failure = None
    tool.gate.clear()
    tool.entered.clear()
    probe = asyncio.create_task(breaking.call_tool(server(), SCOPE, CALL))
    await tool.entered.wait()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    tool.gate.set()
    await breaking.call_tool(server(), SCOPE, CALL)


@pytest.mark.parametrize(
    "kind",
    [
        McpFailureKind.SERVER_ERROR,
        McpFailureKind.TOO_LARGE,
        McpFailureKind.BUSY,
        McpFailureKind.DISABLED,
        McpFailureKind.NOT_INSTALLED,
    ],
)
async def test_failures_that_are_not_the_server_s_never_open_the_breaker(
    tool: Tool, clock: FixedClock, kind: McpFailureKind
) -> None:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    tool.failure = McpFailure(kind, "No.", rpc_code=-32000)
    for _ in range(10):
        assert (await failed(breaking, server())).kind is kind
    assert tool.calls == 10


@pytest.mark.requirement("P3")
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_process_of_one_person_that_breaks_or_hangs_opens_no_breaker_for_others(
    tool: Tool, clock: FixedClock, kind: McpFailureKind
) -> None:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    of_person = server(env={"TOKEN": SecretRef("person:token")}, credentials=Credentials.PERSON)
    acting = replace(SCOPE, person_id=UserId("usr_ann"))
    tool.failure = McpFailure(kind, "No.")
    for _ in range(5):
        with pytest.raises(McpFailure):
            await breaking.call_tool(of_person, acting, CALL)
    assert tool.calls == 5


async def open_breaker(tool: Tool, clock: FixedClock) -> CircuitBreakingConnections:
    breaking = CircuitBreakingConnections(tool.connections, clock=clock, settings=SETTINGS)
    tool.failure = McpFailure(McpFailureKind.TIMEOUT, "No.")
    for _ in range(3):
        await failed(breaking, server())
    tool.failure = None
    assert (await failed(breaking, server())).kind is McpFailureKind.NOT_CONNECTED
    return breaking


@pytest.mark.requirement("B10")
async def test_a_listing_is_let_through_and_makes_the_next_call_the_probe(tool: Tool, clock: FixedClock) -> None:
    breaking = await open_breaker(tool, clock)
    await breaking.discover(server(), SCOPE, timeout_s=1)
    await breaking.call_tool(server(), SCOPE, CALL)


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("how", ["forgive", "forget"])
async def test_who_asks_for_the_server_or_changes_it_closes_the_breaker(
    tool: Tool, clock: FixedClock, how: str
) -> None:
    breaking = await open_breaker(tool, clock)
    if how == "forgive":
        breaking.forgive(ORG, SERVER)
    else:
        await breaking.forget(ORG, SERVER)
    await breaking.call_tool(server(), SCOPE, CALL)
    await breaking.call_tool(server(), SCOPE, CALL)


@pytest.mark.requirement("B10", "B15")
async def test_one_server_s_breaker_is_no_other_s(tool: Tool, clock: FixedClock) -> None:
    breaking = await open_breaker(tool, clock)
    await breaking.call_tool(server("t", id=OTHER_SERVER), SCOPE, CALL)
    others = server("t", id=OTHER_SERVER, organization_id=OTHER_ORG)
    await breaking.call_tool(others, replace(SCOPE, organization_id=OTHER_ORG), CALL)


@pytest.mark.requirement("B10")
async def test_calls_beyond_the_server_s_concurrency_wait_and_those_beyond_the_queue_fail(tool: Tool) -> None:
    bounded = ServerBoundConnections(tool.connections, places=Bulkheads(3))
    narrow = server(max_concurrency=2)
    tool.gate.clear()
    calls = [asyncio.create_task(bounded.call_tool(narrow, SCOPE, CALL)) for _ in range(5)]
    await tool.entered.wait()
    failure = await failed(bounded, narrow)
    assert failure.kind is McpFailureKind.BUSY
    assert tool.inside == 2
    tool.gate.set()
    await asyncio.gather(*calls)
    assert (tool.most_inside, tool.calls) == (2, 5)


@pytest.mark.requirement("B10")
async def test_a_call_waits_for_its_place_no_longer_than_it_may(tool: Tool) -> None:
    bounded = ServerBoundConnections(tool.connections, places=Bulkheads(MAX_WAITING))
    narrow = server(max_concurrency=1)
    tool.gate.clear()
    holding = asyncio.create_task(bounded.call_tool(narrow, SCOPE, CALL))
    await tool.entered.wait()
    assert (await failed(bounded, narrow, replace(CALL, timeout_s=0.01))).kind is McpFailureKind.BUSY
    tool.gate.set()
    await holding
    await bounded.call_tool(narrow, SCOPE, CALL)


async def test_a_call_given_up_while_it_waits_leaves_its_place_in_the_queue(tool: Tool) -> None:
    bounded = ServerBoundConnections(tool.connections, places=Bulkheads(1))
    narrow = server(max_concurrency=1)
    tool.gate.clear()
    holding = asyncio.create_task(bounded.call_tool(narrow, SCOPE, CALL))
    await tool.entered.wait()
    waiting = asyncio.create_task(bounded.call_tool(narrow, SCOPE, CALL))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    next_one = asyncio.create_task(bounded.call_tool(narrow, SCOPE, CALL))
    tool.gate.set()
    await asyncio.gather(holding, next_one)


@pytest.mark.requirement("B10", "B15")
async def test_an_organization_s_calls_are_bounded_over_all_its_servers_and_no_other_s(tool: Tool) -> None:
    bounded = OrganizationBoundConnections(tool.connections, places=Bulkheads(0), max_calls=2)
    tool.gate.clear()
    one, two = server(), server("t", id=OTHER_SERVER)
    calls = [asyncio.create_task(bounded.call_tool(each, SCOPE, CALL)) for each in (one, two)]
    await tool.entered.wait()
    assert (await failed(bounded, one)).kind is McpFailureKind.BUSY
    others = server("t", id=McpServerId("mcp_x"), organization_id=OTHER_ORG)
    calls.append(asyncio.create_task(bounded.call_tool(others, replace(SCOPE, organization_id=OTHER_ORG), CALL)))
    tool.gate.set()
    await asyncio.gather(*calls)
    await bounded.call_tool(one, SCOPE, CALL)


@pytest.mark.requirement("B8")
async def test_what_is_not_in_use_takes_no_memory(tool: Tool) -> None:
    by_server, by_organization = (
        ServerBoundConnections(tool.connections, places=Bulkheads(MAX_WAITING)),
        OrganizationBoundConnections(tool.connections, places=Bulkheads(MAX_WAITING)),
    )
    for number in range(100):
        each = server(id=McpServerId(f"mcp_{number}"))
        await by_server.call_tool(each, SCOPE, CALL)
        await by_organization.call_tool(each, SCOPE, CALL)
    assert (by_server.places_in_use, by_organization.places_in_use) == (0, 0)


@pytest.mark.requirement("B10")
async def test_calls_that_waited_for_a_place_do_not_run_into_a_server_found_broken_meanwhile(
    tool: Tool, clock: FixedClock
) -> None:
    connections = guarded(
        tool.connections, rates=LocalRates(clock=clock), clock=clock, limits=CallLimits(breaker=SETTINGS)
    )
    narrow = server(max_concurrency=1)
    tool.failure = McpFailure(McpFailureKind.CONNECTION_LOST, "No.")
    outcomes = await asyncio.gather(
        *(connections.call_tool(narrow, SCOPE, CALL) for _ in range(20)), return_exceptions=True
    )
    kinds = [cast(McpFailure, outcome).kind for outcome in outcomes]
    assert kinds == [McpFailureKind.CONNECTION_LOST] * 3 + [McpFailureKind.NOT_CONNECTED] * 17
    assert tool.calls == 3


@pytest.mark.requirement("B10")
async def test_a_server_that_makes_its_calls_wait_takes_no_place_of_the_organization(
    tool: Tool, clock: FixedClock
) -> None:
    connections = guarded(
        tool.connections, rates=LocalRates(clock=clock), clock=clock, limits=CallLimits(calls_per_organization=1)
    )
    slow = server(rate_limit=RateLimit(calls=1, per_s=29))
    await connections.call_tool(slow, SCOPE, CALL)
    waiting = asyncio.create_task(connections.call_tool(slow, SCOPE, CALL))
    await asyncio.sleep(0)
    await connections.call_tool(server("t", id=OTHER_SERVER), SCOPE, CALL)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
