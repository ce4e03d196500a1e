"""Which servers end so that others may start."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from application.system.shared_permits import Permits, SharedPermits
from domain.mcp.server import McpServerConfig, McpServerKind
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_life import ConnectionLife
from infrastructure.mcp.connections.process_limit import ProcessLimit
from tests.builders import ORG, a_server
from tests.doubles.permit_leases import InMemoryPermitLeases, Neighbours
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("B10", "K3")


@dataclass(eq=False)
class Started:
    """What the limit sees of a connection to a started server."""

    last_used: float
    is_idle: bool = True


class Servers:
    """Started servers of one process, each of which ends when the test says so."""

    def __init__(self, limit: int, permits: SharedPermits | None = None) -> None:
        self.live: dict[McpConnection, ConnectionLife] = {}
        self.ending: list[McpConnection] = []
        self.limit = ProcessLimit(limit, self.live, end=self._end, permits=permits)
        self.deadline = asyncio.get_running_loop().time() + 60

    async def start(self) -> None:
        await self.limit.wait(ORG, lambda: True, self.deadline)
        server = a_server(config=McpServerConfig(slug="s", kind=McpServerKind.CUSTOM, command="s"))
        life = SimpleNamespace(record=SimpleNamespace(server=server))
        self.live[cast(McpConnection, Started(len(self.live)))] = cast(ConnectionLife, life)

    def ended(self) -> None:
        del self.live[self.ending[-1]]
        self.limit.freed()

    def _end(self, connection: McpConnection) -> None:
        cast(Started, connection).is_idle = False
        self.ending.append(connection)


async def test_for_a_start_in_another_process_no_second_server_ends_while_the_first_is_ending() -> None:
    leases, neighbours = InMemoryPermitLeases(FixedClock()), Neighbours()
    one, two = (neighbours.process(leases, holder) for holder in ("one", "two"))
    servers = Servers(4, one)
    for _ in range(4):
        await servers.start()
    theirs = Permits(f"processes/{ORG}", 4, spare=lambda is_wanted: None, freed=lambda: None)
    for _ in range(3):
        two.want(theirs)
        servers.limit.freed()
    assert len(servers.ending) == 1
    servers.ended()
    await asyncio.wait(one._storing)
    assert await two.lease(theirs, 1) == 1
    two.want(theirs)
    assert len(servers.ending) == 2


async def test_for_a_start_in_its_own_process_no_second_server_ends_while_the_first_is_ending() -> None:
    servers = Servers(3)
    for _ in range(3):
        await servers.start()
    starting = asyncio.create_task(servers.start())
    for _ in range(3):
        await asyncio.sleep(0)
        servers.limit.freed()
    await asyncio.sleep(0)
    assert len(servers.ending) == 1
    assert not starting.done()
    servers.ended()
    await starting
    assert len(servers.ending) == 1
