"""CheckMcpServer: a broken server is an answer in bounded time, and nothing of the test stays
behind."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditLog
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.check_mcp_server import CheckMcpServer, CheckMcpServerCommand, McpCheckResult
from application.mcp.installer import McpInstaller
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpConnections, McpFailure, McpFailureKind, McpServerStore
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.catalog import McpCatalog
from domain.mcp.declared_tool import DeclaredTool
from domain.mcp.kinds import kind_refused
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from tests.builders import ORG, SERVER, a_catalog, a_server, numbered
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import INSTALLATION, a_package_server, a_state_with_servers, certificates_of
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

CONFIG = McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="files-server", env={"TOKEN": "s3cret"})
REMOTE = McpServerConfig(
    slug="mail",
    kind=McpServerKind.HTTP,
    url="https://user:s3cret@Mail.example:8443/mcp?key=s3cret#s3cret",
    headers={"X-Key": "s3cret"},
)
SAVED = a_server(McpServerId(numbered("mcp", 99)), config=CONFIG, version=3)
CRASHED = McpFailure(McpFailureKind.NOT_CONNECTED, "The command exited with code 1.", stderr="no such file")


class Ports:
    """The saved server `files`, which answers after a quarter of a second with one tool. MCP is
    switched on."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers(SAVED)
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.audit_log: AuditLog = InMemoryAuditLog(self.state)
        self.clock = FixedClock()
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.connections.discover.side_effect = self.answers
        self.connections.logs.return_value = "warming up"
        self.catalog_updater: MockType = mocker.create_autospec(CatalogUpdater, instance=True)
        self.installer: MockType = mocker.create_autospec(McpInstaller, instance=True)
        self.switch: MockType = mocker.create_autospec(McpSwitch, instance=True)
        self.switch.is_on.return_value = True
        self.deadline_s = 30.0

    async def answers(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        self.clock.advance(0.25)
        return a_catalog(server.id)

    async def check(self, subject: str | McpServerConfig = CONFIG, **command: Any) -> McpCheckResult:
        checking = CheckMcpServer(
            servers=self.servers,
            catalog_updater=self.catalog_updater,
            switch=self.switch,
            connections=self.connections,
            installer=self.installer,
            certificates=certificates_of(self.state),
            audit_log=self.audit_log,
            clock=self.clock,
            ids=SequentialIds(),
            deadline_s=self.deadline_s,
        )
        defaults: dict[str, Any] = {"principal": a_principal()}
        return await checking.execute(CheckMcpServerCommand(subject=subject, **(defaults | command)))

    @property
    def probe(self) -> McpServer:
        """The server that was connected to."""
        server = self.connections.discover.await_args.args[0]
        assert isinstance(server, McpServer)
        return server

    @property
    def audited(self) -> dict[str, Any]:
        [entry] = self.state.audit.values()
        assert (entry.action, entry.actor, entry.at) == (
            AuditAction.MCP_SERVER_TESTED,
            "key_admin",
            self.clock.now(),
        )
        return {"resource": entry.resource, "server_id": entry.server_id, **entry.details}

    def assert_nothing_was_started(self) -> None:
        self.connections.discover.assert_not_awaited()
        self.catalog_updater.store.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- a server that works ---


@pytest.mark.requirement("B3")
async def test_a_working_server_is_answered_with_its_catalog_and_how_long_it_took(ports: Ports) -> None:
    result = await ports.check()

    assert (result.slug, result.error, result.latency_ms) == ("files", None, 250)
    assert result.catalog == a_catalog(ports.probe.id)
    ports.connections.discover.assert_awaited_once_with(
        ports.probe, ConnectionScope(organization_id=ORG), timeout_s=ports.deadline_s
    )


async def test_testing_an_unsaved_server_stores_nothing_but_an_audit_entry(ports: Ports) -> None:
    await ports.check()

    assert ports.state.servers == {SAVED.id: SAVED}
    ports.catalog_updater.store.assert_not_awaited()
    assert ports.audited == {"resource": "files", "server_id": None, "slug": "files", "ok": True}


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("subject", [CONFIG, "files", SAVED.id], ids=["unsaved", "by slug", "by id"])
async def test_a_test_has_a_connection_of_its_own_which_is_closed_afterwards(
    ports: Ports, subject: str | McpServerConfig
) -> None:
    await ports.check(subject)

    assert ports.probe.id != SAVED.id
    assert ports.probe.config == CONFIG
    ports.connections.forget.assert_awaited_once_with(ORG, ports.probe.id)


@pytest.mark.requirement("B13")
async def test_what_a_saved_server_lists_is_kept_as_a_refresh_would(ports: Ports) -> None:
    await ports.check("files")

    listed = a_catalog(SAVED.id, server_version=3)
    ports.catalog_updater.store.assert_awaited_once_with(SAVED, listed, principal=a_principal())
    ports.connections.forgive.assert_called_once_with(ORG, SAVED.id)


@pytest.mark.requirement("C5")
async def test_a_test_of_a_saved_server_is_audited_with_its_id(ports: Ports) -> None:
    await ports.check("files")
    assert ports.audited == {"resource": SAVED.id, "server_id": SAVED.id, "slug": "files", "ok": True}


@pytest.mark.requirement("B12", "C5")
async def test_a_test_of_a_remote_server_is_audited_with_the_address_and_without_secrets(ports: Ports) -> None:
    await ports.check(REMOTE)

    assert ports.audited["address"] == "https://mail.example:8443/mcp"
    assert "s3cret" not in repr(ports.state.audit)


async def test_a_disabled_server_can_be_tested(ports: Ports) -> None:
    result = await ports.check(replace(CONFIG, enabled=False))

    assert result.error is None
    assert ports.probe.config.enabled


async def test_an_installed_server_is_tested_as_it_is_installed(ports: Ports) -> None:
    installed = a_package_server(installation=INSTALLATION)
    ports.state.servers[SERVER] = installed

    await ports.check("time")

    assert (ports.probe.installation, ports.probe.tested_id) == (INSTALLATION, SERVER)


# --- a server that does not work ---


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("subject", [CONFIG, "files"], ids=["unsaved", "saved"])
async def test_a_server_that_fails_is_an_answer_with_what_it_printed(
    ports: Ports, subject: str | McpServerConfig
) -> None:
    ports.connections.discover.side_effect = CRASHED

    result = await ports.check(subject)

    assert result.catalog is None
    assert result.error is not None
    assert (result.error.code, result.error.detail, result.error.stderr) == (
        McpFailureKind.NOT_CONNECTED,
        CRASHED.detail,
        "no such file",
    )
    assert (ports.audited["ok"], ports.audited["error"]) == (False, "not_connected")
    ports.connections.forget.assert_awaited_once_with(ORG, ports.probe.id)


async def test_a_saved_server_that_fails_keeps_its_catalog_and_its_pauses(ports: Ports) -> None:
    ports.connections.discover.side_effect = CRASHED

    await ports.check("files")

    ports.catalog_updater.store.assert_not_awaited()
    ports.connections.forgive.assert_not_called()


@pytest.mark.requirement("B2", "B14")
async def test_a_server_that_is_not_installed_fails_as_such(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_package_server()
    ports.connections.discover.side_effect = McpFailure(McpFailureKind.NOT_INSTALLED, "MCP server not installed")

    result = await ports.check("time")

    assert result.error is not None
    assert result.error.code is McpFailureKind.NOT_INSTALLED
    assert ports.probe.installation is None


@pytest.mark.requirement("B3")
async def test_a_server_that_never_answers_is_an_answer_within_the_deadline(ports: Ports) -> None:
    ports.connections.discover.side_effect = hanging(asyncio.Event())
    ports.deadline_s = 0.01

    result = await ports.check()

    assert result.error is not None
    assert (result.error.code, result.error.stderr) == (McpFailureKind.TIMEOUT, "warming up")
    ports.connections.forget.assert_awaited_once_with(ORG, ports.probe.id)


async def test_a_test_that_is_cancelled_closes_its_connection(ports: Ports) -> None:
    connected = asyncio.Event()
    ports.connections.discover.side_effect = hanging(connected)
    checking = asyncio.create_task(ports.check())
    await asyncio.wait_for(connected.wait(), 10)

    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking

    ports.connections.forget.assert_awaited_once_with(ORG, ports.probe.id)


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_a_test_starts_nothing_and_answers_so(ports: Ports) -> None:
    ports.switch.is_on.return_value = False

    result = await ports.check()

    assert result.error is not None
    assert result.error.code is McpFailureKind.DISABLED
    ports.switch.is_on.assert_awaited_once_with(ORG)
    ports.assert_nothing_was_started()


# --- what is refused, and failures ---


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
@pytest.mark.parametrize("subject", [CONFIG, "files"], ids=["unsaved", "saved"])
async def test_only_admins_test_servers(ports: Ports, role: Role, subject: str | McpServerConfig) -> None:
    with refused("role_insufficient"):
        await ports.check(subject, principal=a_principal(role))

    ports.assert_nothing_was_started()
    assert ports.state.audit == {}


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_tested(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.check("files", principal=a_stranger())

    ports.assert_nothing_was_started()
    assert ports.state.audit == {}


async def test_a_saved_server_that_cannot_be_read_is_not_tested(ports: Ports, mocker: MockerFixture) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.check("files")

    ports.assert_nothing_was_started()


async def test_a_switch_that_cannot_be_read_starts_nothing(ports: Ports) -> None:
    ports.switch.is_on.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.check()

    ports.assert_nothing_was_started()


async def test_a_test_that_cannot_be_audited_keeps_no_catalog(ports: Ports, mocker: MockerFixture) -> None:
    audit_log = ports.audit_log = mocker.create_autospec(AuditLog, instance=True)
    audit_log.record.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.check("files")

    ports.catalog_updater.store.assert_not_awaited()
    ports.connections.forget.assert_awaited_once_with(ORG, ports.probe.id)


async def test_a_catalog_that_cannot_be_stored_is_not_reported_as_kept(ports: Ports) -> None:
    ports.catalog_updater.store.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.check("files")

    assert ports.audited["ok"] is True


def hanging(connected: asyncio.Event) -> Any:
    """A server that starts and never answers."""

    async def discover(server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        connected.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing wakes the server")

    return discover


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("subject", ["files", CONFIG], ids=["saved", "unsaved"])
async def test_a_kind_that_the_organization_may_not_have_is_not_tried(
    ports: Ports, subject: str | McpServerConfig
) -> None:
    ports.switch.require_kind.side_effect = kind_refused(CONFIG)
    with refused("mcp_kind_not_permitted"):
        await ports.check(subject)
    ports.connections.discover.assert_not_awaited()
    assert ports.state.audit == {}


async def test_a_server_that_is_not_stored_leaves_no_files_behind(ports: Ports) -> None:
    ports.connections.discover.side_effect = CRASHED

    await ports.check()

    ports.installer.uninstall.assert_awaited_once_with(ORG, ports.probe.id)


async def test_files_of_a_stored_server_stay_when_it_is_tested(ports: Ports) -> None:
    await ports.check("files")

    ports.installer.uninstall.assert_not_awaited()


@pytest.mark.requirement("B1")
async def test_a_test_of_declared_tools_says_that_the_server_was_not_contacted(ports: Ports) -> None:
    look = DeclaredTool(name="look", description="Looks.", parameters={"type": "object"})

    assert not (await ports.check()).declared
    assert (await ports.check(replace(REMOTE, declared_tools=(look,)))).declared


async def test_a_saved_server_that_was_not_contacted_keeps_its_failures(ports: Ports) -> None:
    look = DeclaredTool(name="look", description="Looks.", parameters={"type": "object"})
    saved = a_server(McpServerId(numbered("mcp", 98)), config=replace(REMOTE, declared_tools=(look,)))
    ports.servers = InMemoryMcpServerStore(a_state_with_servers(saved))

    await ports.check("mail")

    ports.connections.forgive.assert_not_called()
