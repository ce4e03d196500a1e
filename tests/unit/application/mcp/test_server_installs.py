"""ServerInstalls: installations in the background, what is recorded of them, and what a stopped one
leaves."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress, ServerState, ServerStatus
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from domain.audit.event import AuditAction
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer, McpServerConfig
from tests.builders import ORG, a_server
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.mcp_builders import PACKAGE
from tests.unit.application.actors import a_principal

MISSING = McpInstallFailure(McpInstallFailureKind.PACKAGE_NOT_FOUND, "The registry has no such package.")


class Estate:
    """One registered server, and everything that installs it."""

    def __init__(self, config: McpServerConfig = PACKAGE) -> None:
        self.state = InMemoryState()
        clock, ids = StepClock(), SequentialIds()
        self.server = a_server(config=config)
        self.state.servers[self.server.id] = self.server
        self.servers = servers = InMemoryMcpServerStore(self.state)
        connections = InMemoryMcpConnections()
        self.installer = installer = InMemoryMcpInstaller(clock=clock, ids=ids)
        self.installs = installs = ServerInstalls(
            installer=installer,
            servers=servers,
            connections=connections,
            audit_log=InMemoryAuditLog(self.state),
            clock=clock,
            ids=ids,
        )
        self.statuses = ServerStatuses(connections=connections, installs=installs)

    def begin(self) -> ServerStatus:
        self.installs.start(a_principal(), self.stored)
        return self.status

    async def installed(self) -> McpServer:
        self.begin()
        await self.installs.wait(self.server.id)
        return self.stored

    def change(self, **settings: Any) -> None:
        """Change the stored server."""
        server = self.stored
        self.state.servers[server.id] = replace(
            server, version=server.version + 1, config=replace(server.config, **settings)
        )

    @property
    def stored(self) -> McpServer:
        return self.state.servers[self.server.id]

    @property
    def status(self) -> ServerStatus:
        return self.statuses.of(self.stored)

    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]


@pytest.fixture
def estate() -> Estate:
    return Estate()


async def under_way(estate: Estate) -> None:
    """An installation that waits to be let go on."""
    estate.installer.proceed.clear()
    estate.begin()
    while not estate.installer.started:  # noqa: ASYNC110 (one turn of the loop at a time, bounded by the test's timeout)
        await asyncio.sleep(0)


@pytest.mark.requirement("B2")
async def test_an_installation_runs_in_the_background_with_its_progress_in_the_status(estate: Estate) -> None:
    assert estate.status == ServerStatus(state=ServerState.NOT_INSTALLED, since=estate.server.updated_at)
    estate.installer.proceed.clear()
    assert estate.begin().state is ServerState.INSTALLING
    while not estate.installer.started:  # noqa: ASYNC110 (one turn of the loop at a time, bounded by the test's timeout)
        await asyncio.sleep(0)
    assert estate.status.install == InstallProgress(step="installing", percent=50)
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert estate.status.state is ServerState.DISCONNECTED
    assert estate.status.install is None


@pytest.mark.requirement("B2")
async def test_what_was_installed_is_recorded_as_a_change_of_the_server(estate: Estate) -> None:
    server = await estate.installed()
    assert server.version == 2
    assert server.installation is not None
    assert server.installation.version == "1.2.3"
    assert (estate.status.installed_version, estate.status.installed_at) == ("1.2.3", server.installation.installed_at)
    (entry,) = estate.state.audit.values()
    assert entry.action is AuditAction.MCP_SERVER_INSTALLED
    assert entry.details == {"slug": "time", "version": 2, "installed": "1.2.3"}


@pytest.mark.requirement("B2")
async def test_a_failure_is_in_the_status_and_audited_and_can_be_tried_again(estate: Estate) -> None:
    estate.installer.failure = MISSING
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.NOT_INSTALLED, MISSING.detail)
    assert estate.stored == estate.server
    assert estate.actions() == [AuditAction.MCP_SERVER_INSTALL_FAILED]

    estate.installer.failure = None
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.DISCONNECTED, None)


async def test_an_unexpected_failure_is_reported_without_its_text(
    estate: Estate, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> Installation:
        raise RuntimeError("s3cret")

    vars(estate.installer)["install"] = broken
    await estate.installed()
    assert estate.status.state is ServerState.NOT_INSTALLED
    assert "s3cret" not in str(estate.status.last_error)
    assert "s3cret" in caplog.text


@pytest.mark.requirement("B2")
async def test_a_second_request_joins_the_installation_under_way(estate: Estate) -> None:
    await under_way(estate)
    assert estate.begin().state is ServerState.INSTALLING
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert estate.installer.started == 1


async def test_a_server_whose_files_are_gone_is_installed_again(estate: Estate) -> None:
    lost = await estate.installed()
    assert lost.installation is not None
    await estate.installer.remove(lost.installation.location)
    assert estate.status.state is ServerState.DISCONNECTED, "its next start installs it again"
    assert estate.status.installed_version == lost.installation.version
    again = await estate.installed()
    assert again.installation is not None
    assert again.installation.location != lost.installation.location


@pytest.mark.requirement("B2")
async def test_settings_changed_during_the_installation_are_kept(estate: Estate) -> None:
    await under_way(estate)
    estate.change(timeout_s=5.0)
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert (estate.stored.version, estate.stored.config.timeout_s) == (3, 5.0)
    assert estate.stored.installation is not None


@pytest.mark.requirement("B2")
async def test_an_installation_of_what_is_not_wanted_any_more_is_removed(estate: Estate) -> None:
    await under_way(estate)
    estate.change(version="2.0.0")
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert estate.stored.installation is None
    assert await estate.installer.tidy() == ()
    assert estate.status.state is ServerState.NOT_INSTALLED
    assert estate.status.last_error is not None


@pytest.mark.requirement("B2")
async def test_an_installation_that_is_stopped_before_it_began_is_over(estate: Estate) -> None:
    estate.begin()
    await estate.installs.stop(estate.server.id)
    assert estate.status.state is ServerState.NOT_INSTALLED
    assert (estate.installer.started, (await estate.installed()).installation is None) == (0, False)


@pytest.mark.requirement("B2")
async def test_discarding_stops_an_installation_under_way_and_leaves_nothing(estate: Estate) -> None:
    await under_way(estate)
    await estate.installs.discard(ORG, estate.server.id)
    assert (estate.status.state, estate.status.last_error) == (ServerState.NOT_INSTALLED, None)
    assert await estate.installer.tidy() == ()


@pytest.mark.requirement("B2")
async def test_discarding_removes_what_was_installed(estate: Estate) -> None:
    await estate.installed()
    await estate.installs.discard(ORG, estate.server.id)
    assert await estate.installer.tidy() == ()


async def test_closing_stops_what_is_under_way(estate: Estate) -> None:
    await under_way(estate)
    await estate.installs.close()
    assert (estate.status.state, estate.stored.installation) == (ServerState.NOT_INSTALLED, None)


@pytest.mark.requirement("B2")
async def test_a_start_removes_what_no_server_counts_as_its_own(estate: Estate) -> None:
    server = await estate.installed()
    await estate.installer.install(server, lambda progress: None)
    await estate.installer.install(replace(server, id=a_server().id), lambda progress: None)
    await estate.installs.recover()
    assert server.installation is not None
    assert [found.location for found in await estate.installer.tidy()] == [server.installation.location]


async def test_a_disabled_server_can_be_installed_and_shows_a_failure() -> None:
    estate = Estate(replace(PACKAGE, enabled=False))
    estate.installer.failure = MISSING
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.DISABLED, MISSING.detail)
    estate.installer.failure = None
    assert (await estate.installed()).installation is not None
