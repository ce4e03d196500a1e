"""RefreshMcpServer: who may list a server's tools now, and what a failing server keeps."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, McpServerStore
from application.mcp.refresh_mcp_server import DEFAULT_DEADLINE_S, RefreshMcpServer, RefreshMcpServerCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.catalog import McpCatalog
from domain.mcp.kinds import kind_refused
from domain.mcp.pinning import DefinitionState, pinned_tools
from tests.builders import ORG, SERVER, a_catalog, a_server, an_organization
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below


class Ports:
    """The server `files`, MCP switched on; listing is a mock."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers(a_server())
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.catalog_updater: MockType = mocker.create_autospec(CatalogUpdater, instance=True)
        self.catalog_updater.relist.return_value = a_catalog()
        self.switch: MockType = mocker.create_autospec(McpSwitch, instance=True)
        self.switch.is_on.return_value = True

    async def refresh(
        self, principal: Principal | None = None, *, catalog_updater: CatalogUpdater | None = None
    ) -> McpCatalog:
        refreshing = RefreshMcpServer(
            servers=self.servers, catalog_updater=catalog_updater or self.catalog_updater, switch=self.switch
        )
        return await refreshing.execute(RefreshMcpServerCommand(principal=principal or a_principal(), server="files"))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("B3", "B5")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_operators_list_a_server_now_on_their_own_behalf(ports: Ports, role: Role) -> None:
    principal = a_principal(role)

    assert await ports.refresh(principal) == a_catalog()

    scope = ConnectionScope(organization_id=ORG)
    ports.catalog_updater.relist.assert_awaited_once_with(
        a_server(), scope, timeout_s=DEFAULT_DEADLINE_S, principal=principal
    )


@pytest.mark.requirement("B3")
async def test_a_server_of_a_kind_that_the_organization_may_not_have_is_not_listed(ports: Ports) -> None:
    ports.switch.require_kind.side_effect = kind_refused(a_server().config)
    with refused("mcp_kind_not_permitted"):
        await ports.refresh()
    ports.catalog_updater.relist.assert_not_awaited()


# --- what is stored of a listing ---


class Stored:
    """Listing over in-memory tables and a server whose tools change."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        ports.state.organizations[ORG] = an_organization()
        self.server = InMemoryMcpServer(tools={"echo": text_reply("hi")})
        self.connections = InMemoryMcpConnections({"files": self.server})
        self.catalogs = CatalogUpdater(
            catalogs=InMemoryMcpCatalogStore(ports.state),
            connections=self.connections,
            organizations=InMemoryOrganizationStore(ports.state),
            clock=FixedClock(),
            ids=SequentialIds(),
        )

    async def refresh(self) -> dict[str, DefinitionState]:
        catalog = await self._ports.refresh(catalog_updater=self.catalogs)
        assert self.stored is not None
        assert self.stored.tools == catalog.tools
        return {tool.definition.name: tool.state for tool in pinned_tools(catalog)}

    @property
    def stored(self) -> McpCatalog | None:
        return self._ports.state.catalogs.get(SERVER)


@pytest.fixture
def stored(ports: Ports) -> Stored:
    return Stored(ports)


@pytest.mark.requirement("B13")
async def test_listing_approves_the_first_catalog_and_nothing_after_it(stored: Stored) -> None:
    assert await stored.refresh() == {"echo": DefinitionState.APPROVED}

    stored.server.tools = {"echo": text_reply("hi"), "zip": text_reply("hi")}

    assert await stored.refresh() == {"echo": DefinitionState.APPROVED, "zip": DefinitionState.QUARANTINED}


@pytest.mark.requirement("B5")
async def test_a_server_that_cannot_be_listed_keeps_its_last_good_catalog(stored: Stored) -> None:
    await stored.refresh()
    before = stored.stored
    stored.server.unreachable = McpFailure(McpFailureKind.NOT_CONNECTED, "The command does not exist.")

    with refused("mcp_server_unavailable"):
        await stored.refresh()

    assert stored.stored == before


async def test_a_server_that_failed_before_is_tried_at_once(stored: Stored) -> None:
    await stored.refresh()
    assert stored.connections.forgiven == [SERVER]


# --- what is refused ---


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.OPERATOR))
async def test_a_lower_role_lists_nothing(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.refresh(a_principal(role))

    ports.catalog_updater.relist.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_listed(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.refresh(a_stranger())

    ports.catalog_updater.relist.assert_not_awaited()


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_no_server_is_listed(ports: Ports) -> None:
    ports.switch.is_on.return_value = False

    with refused("mcp_disabled"):
        await ports.refresh()

    ports.switch.is_on.assert_awaited_once_with(ORG)
    ports.catalog_updater.relist.assert_not_awaited()


async def test_a_disabled_server_is_not_listed(ports: Ports) -> None:
    server = a_server()
    ports.state.servers[SERVER] = replace(server, config=replace(server.config, enabled=False))

    with refused("mcp_server_disabled"):
        await ports.refresh()

    ports.catalog_updater.relist.assert_not_awaited()


# --- failures ---


@pytest.mark.requirement("B14")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (McpFailureKind.DISABLED, "mcp_server_disabled"),
        (McpFailureKind.NOT_INSTALLED, "mcp_server_not_installed"),
    ],
)
async def test_a_server_that_cannot_be_started_as_it_is_stored_is_a_conflict(
    ports: Ports, kind: McpFailureKind, code: str
) -> None:
    ports.catalog_updater.relist.side_effect = McpFailure(kind, "It cannot be started.")

    with pytest.raises(ServiceError) as raised:
        await ports.refresh()

    assert (raised.value.code, raised.value.kind) == (code, ErrorKind.CONFLICT)


@pytest.mark.requirement("B5")
@pytest.mark.parametrize(
    "kind", [kind for kind in McpFailureKind if kind not in (McpFailureKind.DISABLED, McpFailureKind.NOT_INSTALLED)]
)
async def test_a_server_that_does_not_answer_is_unavailable_with_the_reason(ports: Ports, kind: McpFailureKind) -> None:
    ports.catalog_updater.relist.side_effect = McpFailure(kind, "No answer.", stderr="s3cret")

    with pytest.raises(ServiceError) as raised:
        await ports.refresh()

    error = raised.value
    assert (error.code, error.kind) == ("mcp_server_unavailable", ErrorKind.UNAVAILABLE)
    assert error.extra == {"reason": kind.value}
    assert "No answer." in error.detail
    assert "s3cret" not in error.detail


async def test_a_server_that_cannot_be_read_is_not_listed(ports: Ports, mocker: MockerFixture) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.refresh()

    ports.catalog_updater.relist.assert_not_awaited()


async def test_a_switch_that_cannot_be_read_lists_nothing(ports: Ports) -> None:
    ports.switch.is_on.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.refresh()

    ports.catalog_updater.relist.assert_not_awaited()


async def test_a_catalog_that_cannot_be_stored_is_not_an_unavailable_server(ports: Ports) -> None:
    ports.catalog_updater.relist.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.refresh()
