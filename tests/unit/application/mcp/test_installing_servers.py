"""Installing and uninstalling servers, in the background, over in-memory adapters."""

import asyncio
from dataclasses import replace

import pytest

from application.mcp.delete_mcp_server import DeleteMcpServer, DeleteMcpServerCommand
from application.mcp.get_mcp_server_logs import GetMcpServerLogs, GetMcpServerLogsCommand
from application.mcp.install_mcp_server import InstallMcpServer, InstallMcpServerCommand
from application.mcp.ports import (
    InstallProgress,
    McpInstallFailure,
    McpInstallFailureKind,
    ServerState,
    ServerStatus,
)
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.uninstall_mcp_server import UninstallMcpServer, UninstallMcpServerCommand
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.egress import EgressPolicy
from tests.builders import ORG, a_server
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal, a_stranger

TIME = McpServerConfig(slug="time", kind=McpServerKind.PYTHON, package="mcp-server-time", version="1.2.3")
IN_PLACE = McpServerConfig(slug="place", kind=McpServerKind.CUSTOM, command="server")
MISSING = McpInstallFailure(McpInstallFailureKind.PACKAGE_NOT_FOUND, "The registry has no such package.")


class Estate:
    """One registered server, and everything that installs it."""

    def __init__(self, config: McpServerConfig = TIME) -> None:
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
        self.statuses = statuses = ServerStatuses(connections=connections, installs=installs, installer=installer)
        self.install = InstallMcpServer(servers=servers, installs=installs, installer=installer, statuses=statuses)
        self.uninstall = UninstallMcpServer(
            servers=servers, installs=installs, statuses=statuses, connections=connections, clock=clock, ids=ids
        )
        self.update = UpdateMcpServer(
            servers=servers, connections=connections, outbound=EgressPolicy(), clock=clock, ids=ids
        )
        self.delete = DeleteMcpServer(servers=servers, connections=connections, installs=installs, clock=clock, ids=ids)
        self.logs = GetMcpServerLogs(servers=servers, connections=connections, installer=installer)

    async def begin(self) -> ServerStatus:
        command = InstallMcpServerCommand(principal=a_principal(), server=self.server.config.slug)
        return await self.install.execute(command)

    async def installed(self) -> McpServer:
        await self.begin()
        await self.installs.wait(self.server.id)
        return self.stored

    async def remove(self) -> ServerStatus:
        return await self.uninstall.execute(UninstallMcpServerCommand(principal=a_principal(), server="time"))

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
    await estate.begin()
    while not estate.installer.started:  # noqa: ASYNC110 (one turn of the loop at a time, bounded by the test's timeout)
        await asyncio.sleep(0)


@pytest.mark.requirement("B2")
async def test_installing_goes_on_in_the_background_with_its_progress_in_the_status(estate: Estate) -> None:
    assert estate.status == ServerStatus(state=ServerState.NOT_INSTALLED, since=estate.server.updated_at)
    estate.installer.proceed.clear()
    assert (await estate.begin()).state is ServerState.INSTALLING
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
async def test_a_failure_is_told_by_the_status_and_audited_and_can_be_tried_again(estate: Estate) -> None:
    estate.installer.failure = MISSING
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.NOT_INSTALLED, MISSING.detail)
    assert estate.stored == estate.server
    assert estate.actions() == [AuditAction.MCP_SERVER_INSTALL_FAILED]

    estate.installer.failure = None
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.DISCONNECTED, None)


async def test_a_fault_of_ours_is_told_without_its_text(estate: Estate, caplog: pytest.LogCaptureFixture) -> None:
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
    assert (await estate.begin()).state is ServerState.INSTALLING
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert estate.installer.started == 1


@pytest.mark.requirement("B2")
async def test_what_is_installed_is_not_installed_again(estate: Estate) -> None:
    await estate.installed()
    with pytest.raises(ServiceError) as refused:
        await estate.begin()
    assert (refused.value.code, refused.value.kind) == ("mcp_server_installed", ErrorKind.CONFLICT)


async def test_a_server_whose_files_are_gone_is_installed_again(estate: Estate) -> None:
    lost = await estate.installed()
    assert lost.installation is not None
    await estate.installer.remove(lost.installation.location)
    assert estate.status.state is ServerState.NOT_INSTALLED
    again = await estate.installed()
    assert again.installation is not None
    assert again.installation.location != lost.installation.location


async def test_a_server_that_is_run_in_place_cannot_be_installed() -> None:
    estate = Estate(IN_PLACE)
    assert estate.status.state is ServerState.DISCONNECTED
    with pytest.raises(ServiceError) as refused:
        await estate.begin()
    assert refused.value.code == "mcp_server_not_installable"


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("change", [{"version": "2.0.0"}, {"package": "other"}])
async def test_what_a_server_is_installed_from_stays_while_it_is_installed(
    estate: Estate, change: dict[str, str]
) -> None:
    await estate.installed()
    command = UpdateMcpServerCommand(principal=a_principal(), server="time", changes=change)  # type: ignore[arg-type]
    with pytest.raises(ServiceError) as refused:
        await estate.update.execute(command)
    assert refused.value.code == "mcp_server_installed"
    await estate.remove()
    assert (await estate.update.execute(command)).config.source != TIME.source


async def test_other_settings_may_change_while_it_is_installed(estate: Estate) -> None:
    await estate.installed()
    command = UpdateMcpServerCommand(principal=a_principal(), server="time", changes={"args": ("--utc",)})
    assert (await estate.update.execute(command)).installation is not None


@pytest.mark.requirement("B2")
async def test_settings_changed_during_the_installation_are_kept(estate: Estate) -> None:
    await under_way(estate)
    command = UpdateMcpServerCommand(principal=a_principal(), server="time", changes={"timeout_s": 5.0})
    await estate.update.execute(command)
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert (estate.stored.version, estate.stored.config.timeout_s) == (3, 5.0)
    assert estate.stored.installation is not None


@pytest.mark.requirement("B2")
async def test_an_installation_of_what_is_not_wanted_any_more_is_removed(estate: Estate) -> None:
    await under_way(estate)
    command = UpdateMcpServerCommand(principal=a_principal(), server="time", changes={"version": "2.0.0"})
    await estate.update.execute(command)
    estate.installer.proceed.set()
    await estate.installs.wait(estate.server.id)
    assert estate.stored.installation is None
    assert await estate.installer.tidy() == ()
    assert estate.status.state is ServerState.NOT_INSTALLED
    assert estate.status.last_error is not None


@pytest.mark.requirement("B2")
async def test_uninstalling_removes_files_and_record_and_keeps_the_registration(estate: Estate) -> None:
    await estate.installed()
    status = await estate.remove()
    assert (status.state, status.installed_version) == (ServerState.NOT_INSTALLED, None)
    assert (estate.stored.version, estate.stored.config) == (3, TIME)
    assert await estate.installer.tidy() == ()
    assert estate.actions() == [AuditAction.MCP_SERVER_INSTALLED, AuditAction.MCP_SERVER_UNINSTALLED]


async def test_uninstalling_what_is_not_installed_changes_nothing(estate: Estate) -> None:
    assert (await estate.remove()).state is ServerState.NOT_INSTALLED
    assert estate.stored == estate.server
    assert estate.actions() == []


@pytest.mark.requirement("B2")
async def test_uninstalling_stops_an_installation_under_way(estate: Estate) -> None:
    await under_way(estate)
    assert (await estate.remove()).state is ServerState.NOT_INSTALLED
    assert await estate.installer.tidy() == ()
    assert estate.stored.installation is None


@pytest.mark.requirement("B2")
async def test_an_installation_that_is_stopped_before_it_began_is_over(estate: Estate) -> None:
    await estate.begin()
    await estate.installs.stop(estate.server.id)
    assert estate.status.state is ServerState.NOT_INSTALLED
    assert (estate.installer.started, (await estate.installed()).installation is None) == (0, False)


async def test_deleting_a_server_stops_and_removes_its_installation(estate: Estate) -> None:
    await estate.installed()
    await estate.delete.execute(DeleteMcpServerCommand(principal=a_principal(), server="time"))
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


async def test_a_disabled_server_can_be_installed_and_tells_of_a_failure() -> None:
    estate = Estate(replace(TIME, enabled=False))
    estate.installer.failure = MISSING
    await estate.installed()
    assert (estate.status.state, estate.status.last_error) == (ServerState.DISABLED, MISSING.detail)
    estate.installer.failure = None
    assert (await estate.installed()).installation is not None


@pytest.mark.requirement("B2")
async def test_the_installers_words_are_in_the_log(estate: Estate) -> None:
    await estate.installed()
    command = GetMcpServerLogsCommand(principal=a_principal(Role.OPERATOR), server="time")
    assert (await estate.logs.execute(command)).startswith("installing time\n")


@pytest.mark.requirement("C6")
async def test_installing_and_uninstalling_is_for_admins_of_the_organization(estate: Estate) -> None:
    for principal, kind in ((a_principal(Role.OPERATOR), ErrorKind.FORBIDDEN), (a_stranger(), ErrorKind.NOT_FOUND)):
        for attempt in (
            estate.install.execute(InstallMcpServerCommand(principal=principal, server="time")),
            estate.uninstall.execute(UninstallMcpServerCommand(principal=principal, server="time")),
        ):
            with pytest.raises(ServiceError) as refused:
                await attempt
            assert refused.value.kind is kind
    assert estate.installer.started == 0
    assert estate.stored.organization_id == ORG
