"""Runs wait for a server that was never listed once, together, and never again for one that did not
answer."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer
from tests.builders import ORG, SERVER, a_catalog, a_definition, a_run_id, a_server, an_organization
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds

DOWN = McpFailure(McpFailureKind.TIMEOUT, "No answer.", stderr="out of cheese")


class SlowConnections(InMemoryMcpConnections):
    """Listings wait for the gate."""

    def __init__(self) -> None:
        super().__init__({"files": InMemoryMcpServer(tools={"read": text_reply("ok")})})
        self.gate = asyncio.Event()
        self.gate.set()
        self.scopes: list[ConnectionScope] = []

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        self.scopes.append(scope)
        await self.gate.wait()
        return await super().discover(server, scope, timeout_s=timeout_s)


class Harness:
    def __init__(self) -> None:
        self.state, self.clock = InMemoryState(), FixedClock()
        self.server = self.state.servers[SERVER] = a_server()
        self.state.organizations[ORG] = an_organization()
        self.connections = SlowConnections()
        self.stored = InMemoryMcpCatalogStore(self.state)
        self.warm = CatalogReader(
            catalogs=self.stored,
            catalog_updater=CatalogUpdater(
                catalogs=self.stored,
                connections=self.connections,
                organizations=InMemoryOrganizationStore(self.state),
                clock=self.clock,
                ids=SequentialIds(),
            ),
            clock=self.clock,
        )

    @property
    def asked(self) -> int:
        return len(self.connections.scopes)

    def is_down(self, failure: McpFailure | None) -> None:
        self.connections.servers["files"].unreachable = failure

    async def of(self, run: int = 1) -> list[str]:
        scope = ConnectionScope(organization_id=ORG, run_id=a_run_id(run))
        return [tool.name for tool in (await self.warm.of(self.server, scope)).tools]

    async def failure(self) -> McpFailure:
        with pytest.raises(McpFailure) as raised:
            await self.of()
        return raised.value

    async def is_idle(self) -> None:
        async with asyncio.timeout(5):
            while any(task.get_name() == "mcp-listing" for task in asyncio.all_tasks()):  # noqa: ASYNC110 (tasks that end set no events)
                await asyncio.sleep(0)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = Harness()
    yield harness
    await harness.warm.close()


@pytest.mark.requirement("B5")
async def test_runs_that_begin_together_ask_a_server_once(harness: Harness) -> None:
    harness.connections.gate.clear()
    runs = [asyncio.create_task(harness.of(number)) for number in range(10)]
    await asyncio.sleep(0)
    harness.connections.gate.set()
    assert await asyncio.gather(*runs) == [["read"]] * 10
    assert harness.asked == 1
    assert await harness.of() == ["read"]
    assert harness.asked == 1


@pytest.mark.requirement("B5")
async def test_a_run_that_is_cancelled_takes_the_listing_from_no_other(harness: Harness) -> None:
    harness.connections.gate.clear()
    first, second = (asyncio.create_task(harness.of(number)) for number in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    harness.connections.gate.set()
    assert await second == ["read"]
    assert (first.cancelled(), harness.asked) == (True, 1)


@pytest.mark.requirement("B5")
async def test_after_a_failure_no_further_run_waits(harness: Harness) -> None:
    harness.is_down(DOWN)
    assert (await harness.failure()).detail == "No answer."
    harness.connections.gate.clear()
    failure = await harness.failure()
    assert (failure.kind, failure.detail, failure.stderr) == (McpFailureKind.TIMEOUT, "No answer.", "out of cheese")
    assert harness.asked == 1


@pytest.mark.requirement("B5")
async def test_after_its_pause_the_server_is_asked_behind_the_back_of_a_run(harness: Harness) -> None:
    harness.is_down(DOWN)
    await harness.failure()
    harness.clock.advance(15)
    harness.is_down(None)
    harness.connections.gate.clear()
    await harness.failure()
    harness.connections.gate.set()
    await harness.is_idle()
    assert [scope.run_id for scope in harness.connections.scopes] == [a_run_id(1), None]
    assert await harness.of() == ["read"]


async def test_pauses_double_while_the_server_stays_away(harness: Harness) -> None:
    harness.is_down(DOWN)
    asked = []
    for pause_s in (0, 14, 1, 29, 1, 59, 1):
        harness.clock.advance(pause_s)
        await harness.failure()
        await harness.is_idle()
        asked.append(harness.asked)
    assert asked == [1, 1, 2, 2, 3, 3, 4]


@pytest.mark.requirement("B5")
async def test_a_changed_server_that_does_not_answer_has_its_former_tools_and_is_asked_in_its_new_version_once(
    harness: Harness,
) -> None:
    harness.state.catalogs[SERVER] = a_catalog(tools=[a_definition("old")])
    harness.server = a_server(version=2)
    harness.is_down(DOWN)
    assert [await harness.of() for _ in range(3)] == [["old"]] * 3
    assert harness.asked == 1
    harness.server = a_server(version=3)
    await harness.of()
    assert harness.asked == 2


async def test_closing_ends_a_listing_and_those_who_wait_for_it(harness: Harness) -> None:
    harness.connections.gate.clear()
    waiting = asyncio.create_task(harness.of())
    await asyncio.sleep(0)
    await harness.warm.close()
    with pytest.raises(McpFailure) as raised:
        await waiting
    assert raised.value.kind is McpFailureKind.NOT_CONNECTED
