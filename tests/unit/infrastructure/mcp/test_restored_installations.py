"""RestoredInstallations: one attempt at a time, and connections that wait for it only so long."""

import asyncio
import logging
from dataclasses import replace

import pytest

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer
from infrastructure.mcp.install.restoring import RestoredInstallations
from tests.builders import OTHER_ORG, START, a_server

pytestmark = pytest.mark.requirement("B2")
INSTALLATION = Installation(version="1.0", location="org/mcp/ins", installed_at=START)
SERVER = replace(a_server(), installation=INSTALLATION)


class Installing:
    """An installation that takes until `done`, and then comes to `outcome`."""

    def __init__(self) -> None:
        self.started = 0
        self.begun = asyncio.Event()
        self.done = asyncio.Event()
        self.ended = asyncio.Event()
        self.outcome: bool | Exception = True

    async def __call__(self, server: McpServer, /) -> bool:
        self.started += 1
        self.begun.set()
        await self.done.wait()
        self.ended.set()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def installing() -> Installing:
    return Installing()


async def test_several_connections_wait_for_one_installation(installing: Installing) -> None:
    restored = RestoredInstallations(installing)
    waiting = [asyncio.create_task(restored.ready(SERVER)) for _ in range(3)]
    await installing.begun.wait()
    installing.done.set()
    await asyncio.gather(*waiting)
    assert installing.started == 1


async def test_a_connection_that_waited_long_enough_leaves_the_installation_to_later_ones(
    installing: Installing,
) -> None:
    restored = RestoredInstallations(installing, wait_s=0.0)
    with pytest.raises(McpFailure) as failed:
        await restored.ready(SERVER)
    assert failed.value.kind is McpFailureKind.NOT_CONNECTED
    installing.done.set()
    async with asyncio.timeout(60):
        await installing.ended.wait()
    assert installing.started == 1


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (False, McpFailureKind.NOT_CONNECTED),
        (McpInstallFailure(McpInstallFailureKind.REGISTRY_UNREACHABLE, "No way."), McpFailureKind.NOT_INSTALLED),
    ],
    ids=["another process installs it", "it cannot be installed"],
)
async def test_what_became_of_it_is_a_failure_of_the_connection(
    installing: Installing, outcome: bool | Exception, kind: McpFailureKind
) -> None:
    installing.outcome = outcome
    installing.done.set()
    restored = RestoredInstallations(installing)
    with pytest.raises(McpFailure) as failed:
        await restored.ready(SERVER)
    assert failed.value.kind is kind
    installing.outcome = True
    await restored.ready(replace(SERVER, installation=replace(INSTALLATION, location="org/mcp/new")))
    assert installing.started == 2, "a new installation has no pause"


@pytest.mark.requirement("S1")
async def test_after_a_failure_there_are_pauses_that_grow(installing: Installing) -> None:
    now = [0.0]
    installing.done.set()
    installing.outcome = McpInstallFailure(McpInstallFailureKind.FAILED, "No way.")
    restored = RestoredInstallations(installing, monotonic=lambda: now[0])
    for attempt, pause in enumerate((30, 60, 120, 240, 480, 900, 900), start=1):
        for moment in (now[0], now[0] + pause - 1):
            now[0] = moment
            with pytest.raises(McpFailure, match="No way") as failed:
                await restored.ready(SERVER)
            assert failed.value.kind is McpFailureKind.NOT_INSTALLED
            assert installing.started == attempt
        now[0] += 1
    installing.outcome = True
    await restored.ready(SERVER)


@pytest.mark.requirement("S1")
async def test_an_organization_has_one_place(installing: Installing) -> None:
    restored = RestoredInstallations(installing, wait_s=0.0)
    second = replace(SERVER, installation=replace(INSTALLATION, location="org/mcp/second"))
    other = replace(second, organization_id=OTHER_ORG, installation=replace(INSTALLATION, location="other/mcp/ins"))
    for server in (SERVER, second, other):
        with pytest.raises(McpFailure):
            await restored.ready(server)
    await installing.begun.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert installing.started == 2, "the first of each organization"
    await restored.close()


@pytest.mark.requirement("S1")
async def test_an_attempt_has_a_deadline(installing: Installing) -> None:
    restored = RestoredInstallations(installing, deadline_s=0.0)
    with pytest.raises(McpFailure, match="0 seconds") as failed:
        await restored.ready(SERVER)
    assert failed.value.kind is McpFailureKind.NOT_INSTALLED
    assert not installing.ended.is_set()


async def test_closing_stops_what_is_under_way(installing: Installing, caplog: pytest.LogCaptureFixture) -> None:
    restored = RestoredInstallations(installing)
    waiting = asyncio.create_task(restored.ready(SERVER))
    await installing.begun.wait()
    with caplog.at_level(logging.INFO):
        await restored.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert caplog.records == []
