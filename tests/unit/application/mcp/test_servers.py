"""MCP servers: registration, changes, deletion, status."""

from collections.abc import Awaitable
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.approve_definition import ApproveDefinition, ApproveDefinitionCommand
from application.mcp.delete_mcp_server import DeleteMcpServer, DeleteMcpServerCommand
from application.mcp.disconnect_mcp_server import DisconnectMcpServer, DisconnectMcpServerCommand
from application.mcp.get_mcp_server import GetMcpServer, GetMcpServerCommand
from application.mcp.get_mcp_server_logs import GetMcpServerLogs, GetMcpServerLogsCommand
from application.mcp.get_mcp_server_status import GetMcpServerStatus, GetMcpServerStatusCommand
from application.mcp.get_mcp_server_tools import GetMcpServerTools, GetMcpServerToolsCommand
from application.mcp.list_mcp_servers import ListMcpServers, ListMcpServersCommand
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpConnections, McpFailure, McpFailureKind, ServerState
from application.mcp.refresh_mcp_server import RefreshMcpServer, RefreshMcpServerCommand
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.mcp.server_catalogs import ServerCatalogs
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from infrastructure.egress import EgressPolicy
from tests.builders import ORG, OTHER_ORG, an_organization
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal, a_stranger

CONFIG = McpServerConfig(
    slug="files",
    kind=McpServerKind.CUSTOM,
    command="files-server",
    env={"TOKEN": "s3cret", "MODE": "fast"},
    isolation=Isolation.SHARED,
)
DOWN = McpFailure(McpFailureKind.NOT_CONNECTED, "The command does not exist.")


class Servers:
    """The MCP slice over in-memory tables and one scripted server."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.scripted = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))}, stderr="warming up")
        self.connections = InMemoryMcpConnections({"files": self.scripted})
        store = InMemoryMcpServerStore(self.state)
        catalogs = InMemoryMcpCatalogStore(self.state)
        clock, ids = StepClock(), SequentialIds()
        self.register = RegisterMcpServer(servers=store, outbound=EgressPolicy(), clock=clock, ids=ids)
        self.update = UpdateMcpServer(
            servers=store, connections=self.connections, outbound=EgressPolicy(), clock=clock, ids=ids
        )
        self.get = GetMcpServer(servers=store)
        self.list = ListMcpServers(servers=store)
        installer = InMemoryMcpInstaller(clock=clock, ids=ids)
        installs = ServerInstalls(
            installer=installer,
            servers=store,
            connections=self.connections,
            audit_log=InMemoryAuditLog(self.state),
            clock=clock,
            ids=ids,
        )
        statuses = ServerStatuses(connections=self.connections, installs=installs, installer=installer)
        self.delete = DeleteMcpServer(
            servers=store, connections=self.connections, installs=installs, clock=clock, ids=ids
        )
        server_catalogs = ServerCatalogs(catalogs=catalogs, connections=self.connections, clock=clock, ids=ids)
        self.state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
        organizations = InMemoryOrganizationStore(self.state)
        switch = McpSwitch(enabled=True, organizations=organizations)
        self.refresh = RefreshMcpServer(servers=store, server_catalogs=server_catalogs, switch=switch)
        self.approve = ApproveDefinition(servers=store, catalogs=catalogs, clock=clock, ids=ids)
        self.server_catalogs = server_catalogs
        self.disconnect = DisconnectMcpServer(servers=store, connections=self.connections, statuses=statuses)
        self.tools = GetMcpServerTools(servers=store, catalogs=catalogs)
        self.status = GetMcpServerStatus(servers=store, statuses=statuses)
        self.logs = GetMcpServerLogs(servers=store, connections=self.connections, installer=installer)

    async def add(self, config: McpServerConfig = CONFIG) -> McpServer:
        return await self.register.execute(RegisterMcpServerCommand(principal=a_principal(), config=config))

    async def connect(self) -> None:
        await self.refresh.execute(RefreshMcpServerCommand(principal=a_principal(), server="files"))

    async def state_now(self) -> ServerState:
        command = GetMcpServerStatusCommand(principal=a_principal(Role.VIEWER), server="files")
        return (await self.status.execute(command)).state

    async def tool_names(self) -> list[str] | None:
        command = GetMcpServerToolsCommand(principal=a_principal(Role.VIEWER), server="files")
        catalog = (await self.tools.execute(command)).catalog
        return None if catalog is None else [tool.name for tool in catalog.tools]

    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]


@pytest.fixture
def servers() -> Servers:
    return Servers()


async def test_registering_starts_and_connects_nothing(servers: Servers) -> None:
    server = await servers.add()
    assert (server.version, server.config) == (1, CONFIG)
    assert servers.connections.discoveries == []
    assert await servers.state_now() is ServerState.DISCONNECTED
    assert await servers.tool_names() is None


async def test_a_server_is_found_by_id_and_by_slug(servers: Servers) -> None:
    server = await servers.add()
    for name in (server.id, "files"):
        assert await servers.get.execute(GetMcpServerCommand(principal=a_principal(), server=name)) == server


async def test_a_slug_is_taken_once(servers: Servers) -> None:
    await servers.add()
    with pytest.raises(ServiceError) as refused:
        await servers.add()
    assert refused.value.code == "mcp_server_slug_taken"


@pytest.mark.requirement("B12")
async def test_secrets_are_merged_entry_by_entry_and_never_audited(servers: Servers) -> None:
    await servers.add()
    changed = await servers.update.execute(
        UpdateMcpServerCommand(
            principal=a_principal(), server="files", env={"TOKEN": "n3w", "MODE": None, "REGION": "eu"}
        )
    )
    assert changed.config.env == {"TOKEN": "n3w", "REGION": "eu"}
    trail = repr(servers.state.audit)
    assert not [secret for secret in ("s3cret", "n3w", "fast") if secret in trail]
    entry = list(servers.state.audit.values())[-1]
    assert (entry.action, entry.details["changed"]) == (AuditAction.MCP_SERVER_UPDATED, ["env"])


async def test_a_change_closes_the_connections_of_the_former_version(servers: Servers) -> None:
    await servers.add()
    await servers.connect()
    assert servers.connections.open_connections == 1
    changed = await servers.update.execute(
        UpdateMcpServerCommand(principal=a_principal(), server="files", changes={"timeout_s": 5.0}, expected_version=1)
    )
    assert changed == replace(changed, version=2, config=replace(CONFIG, timeout_s=5.0), created_at=changed.created_at)
    assert servers.connections.open_connections == 0


async def test_a_change_of_nothing_makes_no_version_and_keeps_connections(servers: Servers) -> None:
    server = await servers.add()
    await servers.connect()
    same = await servers.update.execute(
        UpdateMcpServerCommand(
            principal=a_principal(), server="files", changes={"enabled": True}, env={"MODE": "fast", "ABSENT": None}
        )
    )
    assert same == server
    assert servers.connections.open_connections == 1
    assert servers.actions() == [AuditAction.MCP_SERVER_CREATED]


async def test_a_change_of_an_older_version_or_to_something_invalid_is_refused(servers: Servers) -> None:
    server = await servers.add()
    command = UpdateMcpServerCommand(
        principal=a_principal(), server="files", changes={"timeout_s": 5.0}, expected_version=2
    )
    with pytest.raises(ServiceError) as refused:
        await servers.update.execute(command)
    assert refused.value.code == "version_conflict"
    with pytest.raises(ServiceError) as refused:
        await servers.update.execute(replace(command, changes={"slug": "No Slug"}, expected_version=1))
    assert [violation.path for violation in refused.value.violations] == ["slug"]
    assert await servers.get.execute(GetMcpServerCommand(principal=a_principal(), server="files")) == server


async def test_a_deleted_server_is_gone_with_its_catalog_and_connections(servers: Servers) -> None:
    server = await servers.add()
    await servers.connect()
    await servers.delete.execute(DeleteMcpServerCommand(principal=a_principal(), server="files"))
    assert servers.connections.open_connections == 0
    assert servers.state.catalogs == {}
    with pytest.raises(ServiceError) as refused:
        await servers.get.execute(GetMcpServerCommand(principal=a_principal(), server=server.id))
    assert refused.value.code == "mcp_server_not_found"
    assert servers.actions() == [AuditAction.MCP_SERVER_CREATED, AuditAction.MCP_SERVER_DELETED]


async def test_refreshing_keeps_what_the_server_offers_now(servers: Servers) -> None:
    await servers.add()
    await servers.connect()
    assert await servers.tool_names() == ["echo"]
    servers.scripted.tools = {"search": text_reply("found"), "echo": text_reply("hi")}
    await servers.connect()
    assert await servers.tool_names() == ["echo", "search"]
    assert await servers.state_now() is ServerState.CONNECTED


async def test_a_server_that_cannot_be_listed_keeps_its_last_catalog(servers: Servers) -> None:
    await servers.add()
    await servers.connect()
    servers.scripted.unreachable = DOWN
    with pytest.raises(ServiceError) as refused:
        await servers.connect()
    assert (refused.value.code, refused.value.kind) == ("mcp_server_unavailable", ErrorKind.UNAVAILABLE)
    assert refused.value.extra == {"reason": "not_connected"}
    assert DOWN.detail in refused.value.detail
    assert await servers.tool_names() == ["echo"]


async def test_a_disabled_server_is_not_connected(servers: Servers, mocker: MockerFixture) -> None:
    connections = mocker.create_autospec(McpConnections, instance=True)
    await servers.add(replace(CONFIG, enabled=False))
    refresh = RefreshMcpServer(
        servers=InMemoryMcpServerStore(servers.state),
        server_catalogs=ServerCatalogs(
            catalogs=InMemoryMcpCatalogStore(servers.state),
            connections=connections,
            clock=StepClock(),
            ids=SequentialIds(),
        ),
        switch=McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(servers.state)),
    )
    with pytest.raises(ServiceError) as refused:
        await refresh.execute(RefreshMcpServerCommand(principal=a_principal(), server="files"))
    assert (refused.value.code, refused.value.kind) == ("mcp_server_disabled", ErrorKind.CONFLICT)
    connections.discover.assert_not_called()


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_no_server_is_connected(servers: Servers) -> None:
    await servers.add()
    servers.state.organizations[ORG] = replace(servers.state.organizations[ORG], mcp_enabled=False)
    with pytest.raises(ServiceError) as refused:
        await servers.connect()
    assert (refused.value.code, refused.value.kind) == ("mcp_disabled", ErrorKind.CONFLICT)
    assert servers.connections.discoveries == []


async def test_disconnecting_closes_connections_and_a_later_use_connects_again(servers: Servers) -> None:
    await servers.add()
    await servers.connect()
    command = DisconnectMcpServerCommand(principal=a_principal(Role.OPERATOR), server="files")
    assert (await servers.disconnect.execute(command)).state is ServerState.DISCONNECTED
    assert servers.connections.open_connections == 0
    await servers.connect()
    assert await servers.state_now() is ServerState.CONNECTED


async def test_operators_read_what_a_server_printed(servers: Servers) -> None:
    await servers.add()
    command = GetMcpServerLogsCommand(principal=a_principal(Role.OPERATOR), server="files")
    assert await servers.logs.execute(command) == "warming up"


def _everything(servers: Servers, principal: Principal) -> dict[Role, list[Awaitable[object]]]:
    """Each use case on the server `files`, by the role it needs."""
    return {
        Role.VIEWER: [
            servers.get.execute(GetMcpServerCommand(principal=principal, server="files")),
            servers.tools.execute(GetMcpServerToolsCommand(principal=principal, server="files")),
            servers.status.execute(GetMcpServerStatusCommand(principal=principal, server="files")),
        ],
        Role.OPERATOR: [
            servers.logs.execute(GetMcpServerLogsCommand(principal=principal, server="files")),
            servers.refresh.execute(RefreshMcpServerCommand(principal=principal, server="files")),
            servers.disconnect.execute(DisconnectMcpServerCommand(principal=principal, server="files")),
        ],
        Role.ADMIN: [
            servers.approve.execute(ApproveDefinitionCommand(principal=principal, server="files", tool="echo")),
            servers.update.execute(UpdateMcpServerCommand(principal=principal, server="files")),
            servers.delete.execute(DeleteMcpServerCommand(principal=principal, server="files")),
        ],
    }


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_does_not_exist(servers: Servers) -> None:
    await servers.add()
    for attempts in _everything(servers, a_stranger()).values():
        for attempt in attempts:
            with pytest.raises(ServiceError) as refused:
                await attempt
            assert refused.value.code == "mcp_server_not_found"
    assert (await servers.list.execute(ListMcpServersCommand(principal=a_stranger()))).items == ()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_each_use_case_needs_its_role(servers: Servers, role: Role) -> None:
    await servers.add()
    for needed, attempts in _everything(servers, a_principal(role)).items():
        for attempt in attempts:
            if role.includes(needed):
                await attempt
                continue
            with pytest.raises(ServiceError) as refused:
                await attempt
            assert refused.value.kind is ErrorKind.FORBIDDEN


@pytest.mark.requirement("B12")
async def test_arguments_and_a_url_with_a_secret_in_clear_are_not_stored() -> None:
    servers = Servers()
    remote = McpServerConfig(slug="remote", kind=McpServerKind.HTTP, url="https://mcp.example.org/mcp")
    started = replace(CONFIG, args=("--verbose", "--token", "pl4nted"))
    in_url = "https://mcp.example.org/mcp?api_key=pl4nted"
    by_name = "https://mcp.example.org/mcp?api_key=${secret:TICKETS}"
    refused = []
    for config in (started, replace(remote, url=in_url)):
        with pytest.raises(ServiceError) as registered:
            await servers.register.execute(RegisterMcpServerCommand(principal=a_principal(), config=config))
        refused.append(registered.value)
    stored = await servers.register.execute(
        RegisterMcpServerCommand(principal=a_principal(), config=replace(remote, url=by_name))
    )
    with pytest.raises(ServiceError) as updated:
        await servers.update.execute(
            UpdateMcpServerCommand(principal=a_principal(), server="remote", changes={"url": in_url})
        )
    refused.append(updated.value)

    assert [[fault.path for fault in error.violations] for error in refused] == [["args.2"], ["url"], ["url"]]
    assert {error.code for error in refused} == {"mcp_server_invalid"}
    assert not [error for error in refused if "pl4nted" in repr(error.violations) + error.detail]
    assert stored.config.secret_names == ("TICKETS",)
    assert list(servers.state.servers.values()) == [stored]


@pytest.mark.requirement("B12")
async def test_a_server_that_was_stored_with_a_secret_in_its_url_can_be_changed_otherwise() -> None:
    servers = Servers()
    stored = await servers.register.execute(RegisterMcpServerCommand(principal=a_principal(), config=CONFIG))
    older = replace(stored, config=replace(CONFIG, args=("--token", "pl4nted")))
    [key] = servers.state.servers
    servers.state.servers[key] = older
    changed = await servers.update.execute(
        UpdateMcpServerCommand(principal=a_principal(), server="files", changes={"enabled": False})
    )
    assert changed.config.args == ("--token", "pl4nted")


@pytest.mark.requirement("B16")
async def test_an_address_that_may_not_be_requested_is_not_stored() -> None:
    servers = Servers()
    remote = McpServerConfig(slug="remote", kind=McpServerKind.HTTP, url="https://mcp.example.org/mcp")
    inside = "http://169.254.169.254/latest"
    with pytest.raises(ServiceError) as registered:
        await servers.register.execute(
            RegisterMcpServerCommand(principal=a_principal(), config=replace(remote, url=inside))
        )
    stored = await servers.register.execute(RegisterMcpServerCommand(principal=a_principal(), config=remote))
    with pytest.raises(ServiceError) as updated:
        await servers.update.execute(
            UpdateMcpServerCommand(principal=a_principal(), server="remote", changes={"url": inside})
        )

    for refused in (registered, updated):
        assert (refused.value.code, refused.value.kind) == ("mcp_server_invalid", ErrorKind.INVALID)
        assert [fault.path for fault in refused.value.violations] == ["url"]
    assert list(servers.state.servers.values()) == [stored]
