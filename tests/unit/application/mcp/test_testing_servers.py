"""Testing MCP servers: a broken one is an answer in bounded time, and nothing of the test stays behind."""

import asyncio
from dataclasses import replace

import pytest

from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.mcp.server_catalogs import ServerCatalogs
from application.mcp.test_mcp_server import TestMcpServer, TestMcpServerCommand
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from infrastructure.egress import EgressPolicy
from tests.builders import ORG, an_organization
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.unit.application.actors import a_principal, a_stranger

CONFIG = McpServerConfig(
    slug="files", kind=McpServerKind.CUSTOM, command="files-server", env={"TOKEN": "s3cret"}, isolation=Isolation.SHARED
)
CRASHED = McpFailure(McpFailureKind.NOT_CONNECTED, "The command exited with code 1.", stderr="no such file")


class SilentConnections(InMemoryMcpConnections):
    """A server that starts and never answers."""

    def __init__(self) -> None:
        super().__init__({})
        self.forgotten: list[McpServerId] = []

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        self.discoveries.append(server)
        await asyncio.Event().wait()
        raise AssertionError("nothing wakes the server")

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        self.forgotten.append(server_id)


class Tests:
    """The use case over in-memory tables."""

    __test__ = False

    def __init__(self, connections: InMemoryMcpConnections | None = None, *, deadline_s: float = 30.0) -> None:
        self.state = InMemoryState()
        self.state.organizations[ORG] = an_organization()
        self.scripted = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))})
        self.connections = connections or InMemoryMcpConnections({"files": self.scripted})
        self.store = InMemoryMcpServerStore(self.state)
        self.clock, self.ids = StepClock(), SequentialIds()
        self.catalogs = InMemoryMcpCatalogStore(self.state)
        self.test = TestMcpServer(
            servers=self.store,
            server_catalogs=ServerCatalogs(
                catalogs=self.catalogs, connections=self.connections, clock=self.clock, ids=self.ids
            ),
            switch=McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(self.state)),
            connections=self.connections,
            audit_log=InMemoryAuditLog(self.state),
            clock=self.clock,
            ids=self.ids,
            deadline_s=deadline_s,
        )

    async def save(self, config: McpServerConfig = CONFIG) -> McpServer:
        register = RegisterMcpServer(servers=self.store, outbound=EgressPolicy(), clock=self.clock, ids=self.ids)
        return await register.execute(RegisterMcpServerCommand(principal=a_principal(), config=config))

    def last_entry(self) -> AuditEvent:
        return list(self.state.audit.values())[-1]


async def test_a_working_server_is_shown_with_its_tools() -> None:
    tests = Tests()
    result = await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    assert result.error is None
    assert result.catalog is not None
    assert [tool.name for tool in result.catalog.tools] == ["echo"]
    assert result.catalog.protocol_version == "2026-07-28"


async def test_testing_a_configuration_saves_nothing_but_an_audit_entry() -> None:
    tests = Tests()
    await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    assert (tests.state.servers, tests.state.catalogs) == ({}, {})
    entry = tests.last_entry()
    assert (entry.action, entry.details, entry.server_id) == (
        AuditAction.MCP_SERVER_TESTED,
        {"slug": "files", "ok": True},
        None,
    )


@pytest.mark.requirement("B13")
async def test_what_a_saved_server_lists_in_a_test_is_kept_and_the_first_list_approved() -> None:
    tests = Tests()
    server = await tests.save()
    for tools in (["echo"], ["echo", "zip"]):
        tests.scripted.tools = {name: InMemoryTool(answer=text_reply("hi")) for name in tools}
        await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject="files"))
    kept = await tests.catalogs.load(server.organization_id, server.id)
    assert kept is not None
    assert ([tool.name for tool in kept.tools], dict(kept.quarantined)) == (["echo", "zip"], {"zip": None})
    assert (kept.server_id, kept.server_version) == (server.id, 1)


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_a_test_starts_nothing_and_says_so() -> None:
    tests = Tests()
    tests.state.organizations[ORG] = replace(an_organization(), mcp_enabled=False)
    result = await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    assert result.error is not None
    assert (result.error.code, tests.connections.discoveries) == (McpFailureKind.DISABLED, [])


async def test_a_test_has_its_own_connection_and_leaves_none_behind() -> None:
    tests = Tests()
    server = await tests.save()
    await tests.connections.discover(server, ConnectionScope(organization_id=server.organization_id), timeout_s=1)
    await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject="files"))
    in_use, tested = tests.connections.discoveries
    assert tested.id != in_use.id
    assert tests.connections.open_connections == 1
    assert tests.last_entry().server_id == server.id


async def test_a_disabled_server_can_be_tested() -> None:
    tests = Tests()
    await tests.save(replace(CONFIG, enabled=False))
    result = await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject="files"))
    assert result.error is None


async def test_a_server_that_fails_is_an_answer_with_what_it_printed() -> None:
    tests = Tests()
    tests.scripted.unreachable = CRASHED
    result = await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    assert result.catalog is None
    assert result.error is not None
    assert (result.error.code, result.error.detail, result.error.stderr) == (
        McpFailureKind.NOT_CONNECTED,
        CRASHED.detail,
        "no such file",
    )
    assert tests.last_entry().details == {"slug": "files", "ok": False, "error": "not_connected"}


async def test_a_server_that_never_answers_is_an_answer_within_the_deadline_and_is_let_go() -> None:
    connections = SilentConnections()
    tests = Tests(connections, deadline_s=0.01)
    result = await tests.test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    assert result.error is not None
    assert result.error.code is McpFailureKind.TIMEOUT
    assert connections.forgotten == [server.id for server in connections.discoveries]


async def test_a_test_that_is_cancelled_lets_the_server_go() -> None:
    connections = SilentConnections()
    testing = asyncio.create_task(
        Tests(connections).test.execute(TestMcpServerCommand(principal=a_principal(), subject=CONFIG))
    )
    while not connections.discoveries:  # noqa: ASYNC110 (one turn of the loop at a time, bounded by the test's timeout)
        await asyncio.sleep(0)
    testing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await testing
    assert len(connections.forgotten) == 1


@pytest.mark.requirement("C6")
async def test_testing_needs_the_right_to_save() -> None:
    tests = Tests()
    await tests.save()
    with pytest.raises(ServiceError) as refused:
        await tests.test.execute(TestMcpServerCommand(principal=a_principal(Role.OPERATOR), subject=CONFIG))
    assert refused.value.kind is ErrorKind.FORBIDDEN
    with pytest.raises(ServiceError) as refused:
        await tests.test.execute(TestMcpServerCommand(principal=a_stranger(), subject="files"))
    assert refused.value.code == "mcp_server_not_found"
    assert tests.connections.discoveries == []
