"""A lost server is tried again, one attempt at a time, with pauses that grow, until it is back,
changed or gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.ids import McpServerId
from domain.mcp.backoff import Backoff
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.wrappers.supervised_connections import STABLE_S, SupervisedConnections
from tests.builders import ORG, OTHER_ORG, SERVER, a_server
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.surroundings import FixedClock

LOST = a_server()
DOWN = McpFailure(McpFailureKind.NOT_CONNECTED, "Not there.")


class Harness:
    """`outcomes` are those of the attempts to come, then all succeed; pauses take no time, unless
    `held`."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.outcomes: list[Exception] = []
        self.pauses: list[float] = []
        self.held = False
        self.attempts: list[McpServer] = []
        self.most_at_once = 0
        self.is_closed = False
        self._at_once = 0
        self.supervised = SupervisedConnections(
            InMemoryMcpConnections(),
            owned=self,
            relist=self.relist,
            clock=self.clock,
            backoff=Backoff(first_s=0.5, longest_s=60),
            fraction=lambda: 1.0,
            sleep=self.sleep,
        )

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        self.is_closed = True

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """Nobody watches any here."""

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.held:
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    async def relist(self, server: McpServer) -> None:
        self.attempts.append(server)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1
        if self.outcomes:
            raise self.outcomes.pop(0)

    async def is_settled(self) -> None:
        async with asyncio.timeout(60):
            while self.supervised.servers_reconnecting:  # noqa: ASYNC110 (tasks that end set no events)
                await asyncio.sleep(0)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = Harness()
    yield harness
    await harness.supervised.close()


@pytest.mark.requirement("B7")
async def test_a_lost_server_is_tried_until_it_is_back_with_pauses_that_double(harness: Harness) -> None:
    harness.outcomes = [DOWN, DOWN, DOWN]
    harness.supervised.lost(LOST)
    await harness.is_settled()
    assert harness.pauses == [0.5, 1.0, 2.0, 4.0]
    assert harness.attempts == [LOST] * 4


async def test_a_server_that_says_when_is_not_tried_before(harness: Harness) -> None:
    harness.outcomes = [McpFailure(McpFailureKind.NOT_CONNECTED, "Left alone.", retry_after_s=600.0), DOWN]
    harness.supervised.lost(LOST)
    await harness.is_settled()
    assert harness.pauses == [0.5, 600.0, 2.0]


async def test_what_nobody_expected_does_not_end_the_attempts(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.outcomes = [RuntimeError("the database is away")]
    harness.supervised.lost(LOST)
    await harness.is_settled()
    assert len(harness.attempts) == 2
    assert any(record.exc_info for record in caplog.records)


async def test_a_server_lost_twice_is_tried_by_one_at_a_time(harness: Harness) -> None:
    for _ in range(3):
        harness.supervised.lost(LOST)
    await harness.is_settled()
    assert (len(harness.attempts), harness.most_at_once) == (1, 1)


@pytest.mark.requirement("B7")
async def test_a_server_that_comes_back_only_to_be_lost_again_earns_longer_pauses(harness: Harness) -> None:
    for _ in range(3):
        harness.supervised.lost(LOST)
        await harness.is_settled()
        harness.clock.advance(STABLE_S - 1)
    harness.clock.advance(STABLE_S)
    harness.supervised.lost(LOST)
    await harness.is_settled()
    assert harness.pauses == [0.5, 1.0, 2.0, 0.5]


@pytest.mark.parametrize("how", ["forget", "close"])
async def test_a_server_that_is_changed_or_no_longer_needed_is_not_tried_any_more(harness: Harness, how: str) -> None:
    harness.held = True
    harness.supervised.lost(LOST)
    await asyncio.sleep(0)
    if how == "forget":
        await harness.supervised.forget(ORG, SERVER)
    else:
        await harness.supervised.close()
        assert harness.is_closed
    await asyncio.sleep(0)
    assert (harness.supervised.servers_reconnecting, harness.attempts) == (0, [])


@pytest.mark.requirement("B15")
async def test_forgetting_one_server_leaves_the_others_awaited(harness: Harness) -> None:
    harness.held = True
    others = a_server(McpServerId("mcp_other"), organization_id=OTHER_ORG)
    harness.supervised.lost(LOST)
    harness.supervised.lost(others)
    await harness.supervised.forget(ORG, SERVER)
    await asyncio.sleep(0)
    assert harness.supervised.servers_reconnecting == 1


@pytest.mark.requirement("B7")
async def test_news_of_changed_tools_lists_them_anew(harness: Harness) -> None:
    await harness.supervised.tools_changed(LOST)
    assert harness.attempts == [LOST]
