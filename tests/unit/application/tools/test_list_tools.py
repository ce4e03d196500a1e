"""What the list of tools says of each: where its server stands, whether a call would be tried, and
how old the listing is."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from application.agents.ports import AgentStore
from application.mcp.ports import ServerState, ServerStatus
from application.tools.list_tools import ListTools, ToolListing
from application.tools.toolset_builder import ToolsetBuilder
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.server import Isolation, McpServer
from tests.builders import START, a_catalog, a_server
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.unit.application.runs.harness import ADMIN

pytestmark = pytest.mark.requirement("B7")


async def listings_of(
    server: McpServer,
    *,
    state: ServerState = ServerState.DISCONNECTED,
    last_error: str | None = None,
    quarantined: bool = False,
    age_s: float = 0.0,
) -> list[ToolListing]:
    """The tools of the server, which has one."""
    memory, clock, connections = InMemoryState(), FixedClock(), InMemoryMcpConnections()
    catalog = a_catalog(server.id)
    if quarantined:
        catalog = replace(catalog, quarantined=dict.fromkeys(tool.name for tool in catalog.tools))
    memory.servers[server.id], memory.catalogs[server.id] = server, catalog
    connections.set_status(server, ServerStatus(state=state, since=START, last_error=last_error))
    clock.advance(age_s)
    use_case = ListTools(
        catalog=Mock(spec=ToolsetBuilder, native_types=()),
        agents=Mock(spec=AgentStore),
        servers=InMemoryMcpServerStore(memory),
        catalogs=InMemoryMcpCatalogStore(memory),
        connections=connections,
        clock=clock,
    )
    return list(await use_case.execute(ADMIN))


async def listing_of(
    server: McpServer, *, state: ServerState = ServerState.DISCONNECTED, quarantined: bool = False, age_s: float = 0.0
) -> ToolListing:
    """The one tool of the server."""
    [listing] = await listings_of(server, state=state, quarantined=quarantined, age_s=age_s)
    return listing


@pytest.mark.parametrize("age_s", [0.0, 0.5, 90.0, 86_400.0])
async def test_a_listing_is_as_old_as_the_time_since_the_server_was_listed(age_s: float) -> None:
    listing = await listing_of(a_server(), age_s=age_s)
    assert (listing.as_of, listing.age_s) == (START, age_s)


async def test_a_listing_is_never_younger_than_now_though_clocks_differ() -> None:
    listing = await listing_of(a_server(), age_s=-5.0)
    assert listing.age_s == 0.0


@pytest.mark.parametrize(
    ("state", "available"),
    [
        (ServerState.DISCONNECTED, True),
        (ServerState.CONNECTING, True),
        (ServerState.CONNECTED, True),
        (ServerState.UNHEALTHY, False),
        (ServerState.NEEDS_AUTH, False),
        (ServerState.ERROR, False),
    ],
)
async def test_a_tool_is_available_while_a_call_of_its_server_would_be_tried(
    state: ServerState, available: bool
) -> None:
    listing = await listing_of(a_server(), state=state)
    assert (listing.health, listing.available) == (state.value, available)


async def test_a_tool_of_a_disabled_server_is_not_available() -> None:
    server = a_server()
    disabled = replace(server, config=replace(server.config, enabled=False))
    listing = await listing_of(disabled, state=ServerState.CONNECTED)
    assert (listing.health, listing.available) == ("disabled", False)


async def test_a_tool_in_quarantine_is_not_available_though_its_server_is() -> None:
    listing = await listing_of(a_server(), state=ServerState.CONNECTED, quarantined=True)
    assert (listing.health, listing.available) == ("quarantined", False)


@pytest.mark.parametrize(
    ("loss", "left"), [(ConnectionLoss.UNREGISTER, []), (ConnectionLoss.MARK_UNHEALTHY, ["unhealthy"])]
)
async def test_tools_of_a_lost_server_are_left_out_where_its_strategy_says_so(
    loss: ConnectionLoss, left: list[str]
) -> None:
    server = a_server()
    config = replace(server.config, isolation=Isolation.SHARED, on_connection_loss=loss)
    lost = replace(server, config=config)
    listings = await listings_of(lost, state=ServerState.UNHEALTHY, last_error="It is lost.")
    assert [listing.health.value for listing in listings] == left
    assert len(await listings_of(lost, state=ServerState.CONNECTED, last_error="It is lost.")) == 1
