"""Circuit breakers over several processes on one database."""

import asyncio
from dataclasses import replace

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from infrastructure.mcp.wrappers.breaking_connections import CircuitBreakingConnections
from infrastructure.mcp.wrappers.shared_breakers import SharedBreakers
from infrastructure.persistence.engine.database import StorageAway
from tests.builders import ORG, SERVER
from tests.doubles.breaker_states import InMemoryBreakerStates
from tests.doubles.permit_leases import Neighbours
from tests.doubles.surroundings import FixedClock
from tests.unit.infrastructure.mcp.wrappers.test_guarded_connections import CALL, SCOPE, SETTINGS, Tool, failed, server

pytestmark = pytest.mark.requirement("K3")

NO = McpFailure(McpFailureKind.TIMEOUT, "No.")


class Processes:
    """Processes on one database that call one server. The breaker opens after three failures, for
    ten seconds."""

    def __init__(self, number: int) -> None:
        self.tool = Tool()
        self.clock = FixedClock()
        self.states = InMemoryBreakerStates(self.clock)
        self.neighbours = Neighbours()
        self.shared: list[SharedBreakers] = []
        self.breaking = [self.one_more() for _ in range(number)]

    def one_more(self) -> CircuitBreakingConnections:
        shared = SharedBreakers(states=self.states, signals=self.neighbours.signals())
        self.shared.append(shared)
        return CircuitBreakingConnections(self.tool.connections, clock=self.clock, settings=SETTINGS, shared=shared)

    async def fail(self, process: int) -> McpFailure:
        self.tool.failure = NO
        failure = await failed(self.breaking[process], server())
        await self.settled()
        return failure

    async def answer(self, process: int) -> None:
        self.tool.failure = None
        await self.breaking[process].call_tool(server(), SCOPE, CALL)
        await self.settled()

    async def settled(self) -> None:
        for shared in self.shared:
            await shared.close()

    async def opened(self) -> None:
        for process in range(len(self.breaking)):
            await self.answer(process)
        for _ in range(3):
            await self.fail(0)


async def test_a_breaker_that_opens_in_one_process_is_open_in_all() -> None:
    two = Processes(2)
    await two.opened()
    calls = two.tool.calls
    two.clock.advance(4)
    failure = await two.fail(1)
    assert (failure.kind, failure.retry_after_s) == (McpFailureKind.NOT_CONNECTED, 6.0)
    assert two.tool.calls == calls
    assert two.breaking[1].status(server()).state is ServerState.UNHEALTHY


async def test_failures_of_all_processes_count_together() -> None:
    three = Processes(3)
    for process in range(3):
        await three.answer(process)
    for process in range(3):
        assert (await three.fail(process)).kind is McpFailureKind.TIMEOUT
    for process in range(3):
        assert (await three.fail(process)).kind is McpFailureKind.NOT_CONNECTED


async def test_an_answer_in_one_process_ends_the_row_of_failures_in_all() -> None:
    two = Processes(2)
    await two.answer(0)
    await two.answer(1)
    for _ in range(5):
        await two.fail(0)
        await two.fail(0)
        await two.answer(1)
    assert (await two.fail(1)).kind is McpFailureKind.TIMEOUT


async def test_one_process_probes_a_server_and_its_answer_closes_the_breaker_in_all() -> None:
    two = Processes(2)
    await two.opened()
    two.clock.advance(10)
    two.tool.failure, calls = None, two.tool.calls
    two.tool.gate.clear()
    two.tool.entered.clear()
    probe = asyncio.create_task(two.breaking[0].call_tool(server(), SCOPE, CALL))
    await two.tool.entered.wait()
    assert (await failed(two.breaking[1], server())).kind is McpFailureKind.NOT_CONNECTED
    assert two.tool.calls == calls + 1
    two.tool.gate.set()
    await probe
    await two.settled()
    await two.answer(1)


async def test_a_failed_probe_prolongs_the_pause_in_all() -> None:
    two = Processes(2)
    await two.opened()
    two.clock.advance(10)
    await two.fail(1)
    failure = await two.fail(0)
    assert (failure.kind, failure.retry_after_s) == (McpFailureKind.NOT_CONNECTED, 20.0)


async def test_a_probe_of_a_process_that_died_holds_up_others_no_longer_than_its_call_may_take() -> None:
    two = Processes(2)
    await two.opened()
    two.clock.advance(10)
    assert await two.states.probe(SERVER, CALL.timeout_s)  # and dies
    two.tool.failure = None
    assert (await failed(two.breaking[1], replace(server()))).kind is McpFailureKind.NOT_CONNECTED
    two.clock.advance(CALL.timeout_s)
    await two.answer(1)


async def test_a_probe_that_was_cancelled_lets_another_process_probe_at_once() -> None:
    two = Processes(2)
    await two.opened()
    two.clock.advance(10)
    two.tool.failure = None
    two.tool.gate.clear()
    two.tool.entered.clear()
    probe = asyncio.create_task(two.breaking[0].call_tool(server(), SCOPE, CALL))
    await two.tool.entered.wait()
    probe.cancel()
    await asyncio.wait([probe])
    await two.settled()
    two.tool.gate.set()
    await two.answer(1)
    await two.answer(0)


async def test_a_probe_that_never_reached_the_server_lets_another_process_probe_at_once() -> None:
    two = Processes(2)
    await two.opened()
    two.clock.advance(10)
    two.tool.failure = McpFailure(McpFailureKind.BUSY, "Busy.")
    assert (await failed(two.breaking[0], server())).kind is McpFailureKind.BUSY
    await two.settled()
    await two.answer(1)


async def test_a_successful_listing_ends_the_pause_in_all() -> None:
    two = Processes(2)
    await two.opened()
    await two.breaking[0].discover(server(), SCOPE, timeout_s=5)
    await two.settled()
    await two.answer(1)
    await two.answer(0)


async def test_a_server_is_forgiven_in_all_by_a_process_that_never_called_it() -> None:
    two = Processes(2)
    await two.opened()
    two.one_more().forgive(ORG, SERVER)
    await two.settled()
    await two.answer(0)


async def test_a_process_that_starts_later_reads_that_a_breaker_is_open() -> None:
    two = Processes(2)
    await two.opened()
    two.breaking.append(two.one_more())
    await two.fail(2)
    assert (await two.fail(2)).kind is McpFailureKind.NOT_CONNECTED


async def test_a_forgiven_or_changed_server_has_a_closed_breaker_in_all() -> None:
    two = Processes(2)
    await two.opened()
    two.breaking[1].forgive(ORG, SERVER)
    await two.settled()
    await two.answer(0)
    await two.opened()
    await two.breaking[1].forget(ORG, SERVER)
    await two.settled()
    await two.answer(0)


async def test_without_the_database_each_process_has_its_own_breaker() -> None:
    two = Processes(2)
    two.states.failure = StorageAway()
    await two.opened()
    assert (await two.fail(0)).kind is McpFailureKind.NOT_CONNECTED
    two.clock.advance(10)
    await two.answer(0)
