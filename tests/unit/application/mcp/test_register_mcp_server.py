"""RegisterMcpServer: which servers are stored, for whom, and which are refused before that."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpServerStore
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.json_value import JsonObject
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.declared_tool import DeclaredTool
from domain.mcp.kinds import NEW_ORGANIZATION_KINDS
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG, OTHER_ORG, START, a_server, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers, a_switch, certificates_of, permit_kinds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.team_ports import team_checks

CONFIG = McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="files-server", env={"TOKEN": "s3cret"})
REMOTE = McpServerConfig(
    slug="mail", kind=McpServerKind.HTTP, url="https://mail.example/mcp", headers={"X-Key": "s3cret"}
)
THERE = a_server(McpServerId(numbered("mcp", 99)), slug="files")


class Ports:
    """No server is registered, and every address may be reached."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers()
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None
        self.ids = SequentialIds()

    async def register(self, config: McpServerConfig = CONFIG, *, by: Principal | None = None) -> McpServer:
        registering = RegisterMcpServer(
            servers=self.servers,
            switch=a_switch(self.state),
            outbound=self.outbound,
            schemas=JsonSchemaValidator(),
            certificates=certificates_of(self.state),
            team_checks=team_checks(self.state),
            clock=FixedClock(),
            ids=self.ids,
        )
        return await registering.execute(RegisterMcpServerCommand(principal=by or a_principal(), config=config))

    def assert_nothing_is_stored(self) -> None:
        assert self.state.servers == {}
        assert self.state.audit == {}


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("config", [CONFIG, REMOTE], ids=["started", "remote"])
async def test_a_server_is_stored_at_version_1_as_it_was_given(ports: Ports, config: McpServerConfig) -> None:
    server = await ports.register(config)

    assert (server.version, server.config, server.organization_id, server.installation) == (1, config, ORG, None)
    assert (server.created_at, server.updated_at) == (START, START)
    assert ports.state.servers == {server.id: server}


@pytest.mark.requirement("B12", "C5")
async def test_a_registration_is_audited_without_any_value_of_env_and_headers(ports: Ports) -> None:
    servers = [await ports.register(CONFIG), await ports.register(REMOTE)]

    entries = list(ports.state.audit.values())
    assert [(entry.action, entry.actor, entry.server_id) for entry in entries] == [
        (AuditAction.MCP_SERVER_CREATED, "key_admin", server.id) for server in servers
    ]
    assert entries[0].details == {"slug": "files", "kind": "custom", "version": 1}
    assert "s3cret" not in repr(entries)


@pytest.mark.requirement("B1")
async def test_a_kind_that_the_organization_may_not_have_is_not_registered(ports: Ports) -> None:
    permit_kinds(ports.state, *NEW_ORGANIZATION_KINDS)
    archive = McpServerConfig(slug="wheel", kind=McpServerKind.PYTHON, package="/srv/server-1.0-py3-none-any.whl")
    for config in (CONFIG, archive):
        with refused("mcp_kind_not_permitted"):
            await ports.register(config)
    ports.assert_nothing_is_stored()
    await ports.register(REMOTE)


@pytest.mark.requirement("B7")
@pytest.mark.parametrize("isolation", [Isolation.RUN, Isolation.THREAD])
async def test_unregister_is_refused_without_a_shared_connection_to_lose(ports: Ports, isolation: Isolation) -> None:
    config = replace(CONFIG, isolation=isolation, on_connection_loss=ConnectionLoss.UNREGISTER)
    with pytest.raises(ServiceError) as refusal:
        await ports.register(config)
    assert [violation.path for violation in refusal.value.violations] == ["on_connection_loss"]
    ports.assert_nothing_is_stored()
    await ports.register(replace(config, isolation=Isolation.SHARED))


async def test_a_slug_is_taken_once_in_an_organization(ports: Ports) -> None:
    ports.state.servers[THERE.id] = THERE

    with refused("mcp_server_slug_taken"):
        await ports.register()

    assert ports.state.servers == {THERE.id: THERE}
    assert ports.state.audit == {}


@pytest.mark.requirement("C6")
async def test_another_organization_may_have_the_same_slug(ports: Ports) -> None:
    ports.state.servers[THERE.id] = THERE

    server = await ports.register(by=a_stranger())

    assert (server.organization_id, server.config.slug) == (OTHER_ORG, "files")


@pytest.mark.requirement("B16")
async def test_an_address_that_no_request_may_be_sent_to_is_not_stored(ports: Ports) -> None:
    ports.outbound.refusal.return_value = "is a private address"

    with pytest.raises(ServiceError) as raised:
        await ports.register(REMOTE)

    assert (raised.value.code, raised.value.kind) == ("mcp_server_invalid", ErrorKind.INVALID)
    assert [fault.path for fault in raised.value.violations] == ["url"]
    ports.outbound.refusal.assert_called_once_with(REMOTE.url)
    ports.assert_nothing_is_stored()


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    ("config", "path"),
    [
        (replace(CONFIG, args=("--verbose", "--token", "pl4nted")), "args.2"),
        (replace(REMOTE, url="https://mail.example/mcp?api_key=pl4nted"), "url"),
    ],
    ids=["arguments", "url"],
)
async def test_arguments_and_a_url_with_a_secret_in_clear_are_not_stored(
    ports: Ports, config: McpServerConfig, path: str
) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.register(config)

    assert raised.value.code == "mcp_server_invalid"
    assert [fault.path for fault in raised.value.violations] == [path]
    assert "pl4nted" not in repr(raised.value.violations) + raised.value.detail
    ports.assert_nothing_is_stored()


@pytest.mark.requirement("B12")
async def test_a_url_may_name_a_secret(ports: Ports) -> None:
    server = await ports.register(replace(REMOTE, url="https://mail.example/mcp?api_key=${secret:MAIL}"))
    assert server.config.secret_names == ("MAIL",)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_register_servers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.register(by=a_principal(role))

    ports.assert_nothing_is_stored()


async def test_a_server_that_cannot_be_stored_is_not_reported_as_registered(
    ports: Ports, mocker: MockerFixture
) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.register()


@pytest.mark.requirement("B1")
async def test_declared_tools_need_schemas_that_are_usable(ports: Ports) -> None:
    lookup = DeclaredTool(name="lookup", description="Looks up.", parameters={"type": "object"})
    remote_schema: JsonObject = {"type": "object", "properties": {"ip": {"$ref": "https://mail.example/ip.json"}}}
    unusable = replace(lookup, name="other", parameters=remote_schema, output_schema=remote_schema)

    with pytest.raises(ServiceError) as error:
        await ports.register(replace(REMOTE, declared_tools=(lookup, unusable)))
    assert [violation.path for violation in error.value.violations] == [
        "declared_tools.1.parameters",
        "declared_tools.1.output_schema",
    ]
    ports.assert_nothing_is_stored()

    server = await ports.register(replace(REMOTE, declared_tools=(lookup,)))
    assert server.config.declared_tools == (lookup,)
