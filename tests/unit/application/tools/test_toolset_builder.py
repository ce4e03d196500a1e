"""The toolset of an agent: native tools, tools of its servers, in one order, whatever the servers
do."""

from dataclasses import replace

import pytest

from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, ServerState, ServerStatus
from application.tools.server_tools import INSTRUCTIONS_LIMIT_BYTES, bound_tool
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import AgentConfig
from domain.ids import McpServerId
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from domain.policy.allowlist import Allowlist
from domain.tools.capabilities import ToolType
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from tests.builders import ORG, OTHER_ORG, START, a_catalog, a_definition, a_server, an_agent, an_organization
from tests.circumstances import circumstances
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds, StepClock

SCOPE = ConnectionScope(organization_id=ORG)


def scripted(name: str) -> InMemoryTool:
    """A tool that describes itself as `a_definition` does."""
    known = a_definition(name)
    return InMemoryTool(answer=text_reply("ok"), description=known.description, input_schema=known.input_schema)


class Harness:
    """A catalog over in-memory stores; servers are registered with `add`."""

    def __init__(self, *, mcp_enabled: bool = True) -> None:
        self.state = InMemoryState()
        self.state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
        self.connections = InMemoryMcpConnections()
        self.clock = FixedClock()
        catalogs = InMemoryMcpCatalogStore(self.state)
        self.catalog_updater = CatalogUpdater(
            catalogs=catalogs,
            connections=self.connections,
            organizations=InMemoryOrganizationStore(self.state),
            clock=StepClock(),
            ids=SequentialIds(),
        )
        self.catalog = ToolsetBuilder(
            circumstances=circumstances(self.state, self.clock),
            native_tools={},
            displayable_tools={tool.type: tool for tool in DISPLAYABLE_TOOLS},
            servers=InMemoryMcpServerStore(self.state),
            catalogs=CatalogReader(catalogs=catalogs, catalog_updater=self.catalog_updater, clock=self.clock),
            connections=self.connections,
            switch=McpSwitch(enabled=mcp_enabled, organizations=InMemoryOrganizationStore(self.state)),
            organizations=InMemoryOrganizationStore(self.state),
        )

    def add(
        self, slug: str, *tools: str, listed: bool = True, trusted: bool = False, enabled: bool = True, version: int = 1
    ) -> McpServer:
        server_id = McpServerId(f"mcp_{slug}")
        config = McpServerConfig(
            slug=slug, kind=McpServerKind.CUSTOM, command="x", trusted=trusted, enabled=enabled, timeout_s=7
        )
        server = self.state.servers[server_id] = a_server(server_id, version=version, config=config)
        self.connections.servers[slug] = InMemoryMcpServer(tools={name: scripted(name) for name in tools})
        if listed:
            self.state.catalogs[server_id] = a_catalog(
                server_id, tools=map(a_definition, tools), instructions="é" * 2_000
            )
        return server

    async def tools(
        self,
        *servers: str,
        tools: tuple[ToolType, ...] = (),
        allowlist: Allowlist = None,
        run_allowlist: Allowlist = None,
    ) -> Toolset:
        config: AgentConfig = an_agent(mcp_servers=servers, tools=tools, tool_allowlist=allowlist).config
        return await self.catalog.toolset(config, SCOPE, run_allowlist=run_allowlist)


def names(toolset: Toolset) -> list[str]:
    return [tool.name for tool in toolset.tools]


@pytest.mark.requirement("B13")
async def test_tools_in_quarantine_are_counted_and_not_offered() -> None:
    harness = Harness()
    server = harness.add("a", "one", "two")
    changed = a_catalog(
        server.id, tools=[a_definition("new"), a_definition("one"), a_definition("two", description="!")]
    )
    await harness.catalog_updater.store(server, changed)
    toolset = await harness.tools("a")
    assert names(toolset) == ["mcp__a__one"]
    assert [overview.awaiting_approval for overview in toolset.servers] == [2]


@pytest.mark.requirement("C6")
async def test_looking_at_an_agents_tools_starts_no_server() -> None:
    harness = Harness()
    harness.add("known", "one")
    harness.add("changed", "two", version=2)
    harness.add("unlisted", "three", listed=False)
    config = an_agent(mcp_servers=("changed", "known", "unlisted")).config
    toolset = await harness.catalog.listed_toolset(config, ORG)
    assert names(toolset) == ["mcp__changed__two", "mcp__known__one"]
    assert [overview.slug for overview in toolset.servers if overview.unavailable] == ["unlisted"]
    assert harness.connections.discoveries == []


@pytest.mark.requirement("A13", "B5")
async def test_listed_servers_are_not_asked() -> None:
    harness = Harness()
    harness.add("b", "two", "one")
    harness.add("a", "three")
    toolset = await harness.tools("b", "a", tools=(ToolType.SEND_EMAIL,))
    assert names(toolset) == ["send_email", "mcp__a__three", "mcp__b__one", "mcp__b__two"]
    assert harness.connections.discoveries == []
    assert toolset.find("mcp__b__one") == toolset.tools[2]
    assert toolset.find("one") is None


async def test_a_kind_the_installation_does_not_have_is_left_out() -> None:
    assert names(await Harness().tools(tools=(ToolType.CODE_EXECUTION, ToolType.SEND_EMAIL))) == ["send_email"]


@pytest.mark.requirement("B5")
async def test_a_server_never_listed_is_asked_and_its_catalog_kept() -> None:
    harness = Harness()
    server = harness.add("new", "tool", listed=False)
    assert names(await harness.tools("new")) == names(await harness.tools("new")) == ["mcp__new__tool"]
    assert harness.connections.discoveries == [server]
    assert harness.state.catalogs[server.id].server_version == 1


@pytest.mark.requirement("B5")
async def test_a_server_that_was_changed_since_is_asked_again_and_else_its_old_catalog_serves() -> None:
    harness = Harness()
    harness.add("s", "old")
    changed = harness.add("s", "old", "new", listed=False, version=2)
    asked = await harness.tools("s")
    assert (names(asked), asked.servers[0].awaiting_approval) == (["mcp__s__old"], 1)
    harness.add("s", "newer", listed=False, version=3)
    harness.connections.servers["s"].unreachable = McpFailure(McpFailureKind.TIMEOUT, "No answer.")
    assert names(await harness.tools("s")) == ["mcp__s__old"]
    assert harness.state.catalogs[changed.id].server_version == 2


@pytest.mark.requirement("B5")
async def test_servers_that_do_not_answer_are_reported_and_the_others_stand() -> None:
    harness = Harness()
    harness.add("good", "tool")
    harness.add("dead", listed=False)
    harness.add("off", "tool", enabled=False)
    harness.connections.servers["dead"].unreachable = McpFailure(McpFailureKind.TIMEOUT, "No answer.")
    toolset = await harness.tools("good", "dead", "off", "missing")
    assert names(toolset) == ["mcp__good__tool"]
    assert {server.slug: server.unavailable for server in toolset.servers} == {
        "dead": "No answer.",
        "good": None,
        "missing": "there is no such MCP server",
        "off": "the MCP server is disabled",
    }


@pytest.mark.requirement("B5", "B16")
async def test_advice_for_the_operator_is_not_given_to_models() -> None:
    harness = Harness()
    harness.add("inside", listed=False)
    harness.connections.servers["inside"].unreachable = McpFailure(
        McpFailureKind.NOT_CONNECTED, "Not public. It is 10.0.0.1; set this.", for_model="Not public."
    )
    for _ in range(2):  # asked, and remembered
        assert [server.unavailable for server in (await harness.tools("inside")).servers] == ["Not public."]


@pytest.mark.requirement("B5")
async def test_a_connection_that_breaks_its_own_rules_makes_one_server_unavailable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = Harness()
    harness.add("good", "tool", listed=False)
    harness.add("bad", listed=False)
    discover = harness.connections.discover

    async def breaking(server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> object:
        if server.config.slug == "bad":
            raise RuntimeError("token hunter2")
        return await discover(server, scope, timeout_s=timeout_s)

    harness.connections.discover = breaking  # type: ignore[assignment,method-assign]  # a broken adapter
    toolset = await harness.tools("good", "bad")
    assert names(toolset) == ["mcp__good__tool"]
    unavailable = {server.slug: server.unavailable for server in toolset.servers}["bad"]
    assert unavailable is not None
    assert "hunter2" not in unavailable
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_no_server_is_looked_at() -> None:
    harness = Harness(mcp_enabled=False)
    harness.add("s", "tool")
    toolset = await harness.tools("s", tools=(ToolType.SEND_EMAIL,))
    assert names(toolset) == ["send_email"]
    assert [server.unavailable for server in toolset.servers] == ["MCP disabled"]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("agent", "run", "left"),
    [
        (None, None, ["send_email", "mcp__s__a", "mcp__s__b"]),
        ((), None, []),
        (None, (), []),
        (("mcp__s__*",), None, ["mcp__s__a", "mcp__s__b"]),
        (("mcp__s__*",), ("send_email", "*__b"), ["mcp__s__b"]),
        (("MCP__*",), None, []),
    ],
)
async def test_what_the_agent_and_the_run_both_allow_is_left(agent: Allowlist, run: Allowlist, left: list[str]) -> None:
    harness = Harness()
    harness.add("s", "a", "b")
    toolset = await harness.tools("s", tools=(ToolType.SEND_EMAIL,), allowlist=agent, run_allowlist=run)
    assert names(toolset) == left
    assert [tool.name for tool in toolset.servers[0].tools] == [name for name in left if name.startswith("mcp__")]


@pytest.mark.requirement("B6")
async def test_names_that_collide_are_reported_and_the_first_one_stands() -> None:
    harness = Harness()
    harness.add("other", "t")
    server = harness.add("twice")
    harness.state.catalogs[server.id] = a_catalog(
        server.id, tools=(a_definition("t", description="first"), a_definition("t", description="second"))
    )
    toolset = await harness.tools("other", "twice")
    assert names(toolset) == ["mcp__other__t", "mcp__twice__t"]
    assert [tool.description for tool in toolset.tools][1] == "first"
    assert toolset.problems == ("mcp__twice__t: the name is already taken by another tool",)


@pytest.mark.requirement("A13")
async def test_instructions_of_a_trusted_server_are_capped_in_bytes() -> None:
    harness = Harness()
    harness.add("s", trusted=True)
    harness.add("t")
    trusted, untrusted = (await harness.tools("s", "t")).servers
    assert trusted.instructions is not None
    assert len(trusted.instructions.encode()) == INSTRUCTIONS_LIMIT_BYTES
    assert untrusted.instructions is None


@pytest.mark.requirement("C6")
async def test_servers_of_another_organization_do_not_exist() -> None:
    harness = Harness()
    harness.add("s", "tool")
    config = an_agent(mcp_servers=("s",)).config
    toolset = await harness.catalog.toolset(config, ConnectionScope(organization_id=OTHER_ORG))
    assert (toolset.tools, toolset.servers[0].unavailable) == ((), "there is no such MCP server")


@pytest.mark.requirement("B5")
async def test_a_store_that_cannot_be_read_is_not_taken_for_a_dead_server() -> None:
    harness = Harness()
    harness.add("s", "tool")
    harness.state.catalogs = None  # type: ignore[assignment]  # a store that is broken
    with pytest.raises(AttributeError):
        await harness.tools("s")


@pytest.mark.requirement("E3")
@pytest.mark.parametrize(
    ("trusted", "read_only", "idempotent", "repeatable"),
    [(True, True, False, True), (True, False, True, True), (True, False, False, False), (False, True, True, False)],
)
def test_hints_count_only_if_the_server_is_trusted(
    trusted: bool, read_only: bool, idempotent: bool, repeatable: bool
) -> None:
    server = Harness().add("s", trusted=trusted)
    definition = McpToolDefinition(
        name="t.x",
        description="",
        input_schema={"type": "object"},
        read_only_hint=read_only,
        idempotent_hint=idempotent,
    )
    tool = bound_tool(server, definition)
    assert tool.repeatable is repeatable
    assert tool.mcp is not None
    assert (tool.mcp.tool_name, tool.mcp.server_id, tool.mcp.timeout_s) == ("t.x", server.id, 7)
    assert tool.name.startswith("mcp__s__t_x_")


@pytest.mark.requirement("B5", "B8")
async def test_a_toolset_is_made_once_for_as_long_as_nothing_changes() -> None:
    harness = Harness()
    harness.add("s", "one")
    harness.add("t", "two")
    first = await harness.tools("s", "t")
    assert await harness.tools("s", "t") is first
    assert await harness.tools("s", "t", run_allowlist=("mcp__s__*",)) is not first
    assert await harness.tools("s") is not first
    harness.add("t", "two", "three")
    changed = await harness.tools("s", "t")
    assert names(changed) == ["mcp__s__one", "mcp__t__three", "mcp__t__two"]
    assert changed.servers[0].tools[0] is first.servers[0].tools[0]


async def test_a_toolset_follows_a_server_that_is_switched_off_or_renamed() -> None:
    harness = Harness()
    server = harness.add("s", "one")
    assert names(await harness.tools("s")) == ["mcp__s__one"]
    harness.state.servers[server.id] = replace(server, config=replace(server.config, enabled=False))
    assert names(await harness.tools("s")) == []
    harness.state.servers[server.id] = replace(server, config=replace(server.config, slug="r"))
    assert names(await harness.tools("r")) == ["mcp__r__one"]


@pytest.mark.requirement("B8", "B15")
async def test_organizations_with_equal_agents_have_each_their_own_toolset() -> None:
    harness = Harness()
    harness.add("s", "one")
    config = an_agent(mcp_servers=("s",)).config
    assert names(await harness.catalog.toolset(config, SCOPE)) == ["mcp__s__one"]
    others = await harness.catalog.toolset(config, ConnectionScope(organization_id=OTHER_ORG))
    assert [server.unavailable for server in others.servers] == ["there is no such MCP server"]


@pytest.mark.requirement("B8")
async def test_ten_thousand_tools_are_all_found_by_name() -> None:
    harness = Harness()
    harness.add("big", *(f"tool_{number}" for number in range(10_000)))
    toolset = await harness.tools("big")
    assert (len(toolset.tools), toolset.problems) == (10_000, ())
    assert all(toolset.find(tool.name) is tool for tool in toolset.tools)
    assert await harness.tools("big") is toolset


LOST = ServerStatus(state=ServerState.UNHEALTHY, since=START, last_error="The connection was lost.")


@pytest.mark.requirement("B7")
@pytest.mark.parametrize(
    ("strategy", "isolation", "offered"),
    [
        (ConnectionLoss.UNREGISTER, Isolation.SHARED, []),
        (ConnectionLoss.MARK_UNHEALTHY, Isolation.SHARED, ["mcp__s__one"]),
        (ConnectionLoss.UNREGISTER, Isolation.RUN, ["mcp__s__one"]),
    ],
)
@pytest.mark.parametrize("state", [ServerState.UNHEALTHY, ServerState.ERROR, ServerState.CONNECTING])
async def test_while_a_shared_connection_is_lost_the_server_s_strategy_decides(
    strategy: ConnectionLoss, isolation: Isolation, offered: list[str], state: ServerState
) -> None:
    harness = Harness()
    server = harness.add("s", "one")
    config = replace(server.config, on_connection_loss=strategy, isolation=isolation)
    harness.state.servers[server.id] = replace(server, config=config)
    assert names(await harness.tools("s")) == ["mcp__s__one"]
    connected = await harness.tools("s")
    assert not await harness.catalog.is_outdated(connected, ORG)
    harness.connections.set_status(server, replace(LOST, state=state))
    assert await harness.catalog.is_outdated(connected, ORG) is not bool(offered)
    toolset = await harness.tools("s")
    assert not await harness.catalog.is_outdated(toolset, ORG)
    assert names(toolset) == offered
    unavailable = None if offered else "the connection to the MCP server is lost"
    assert toolset.servers[0].unavailable == unavailable
    harness.connections.set_status(server, ServerStatus(state=ServerState.CONNECTED, since=START))
    assert names(await harness.tools("s")) == ["mcp__s__one"]


@pytest.mark.requirement("B14")
async def test_a_server_that_is_not_installed_is_unavailable_and_its_siblings_stand() -> None:
    harness = Harness()
    harness.add("here", "one")
    gone = harness.add("gone", "two")
    config = McpServerConfig(slug="gone", kind=McpServerKind.PYTHON, package="gone")
    harness.state.servers[gone.id] = replace(gone, config=config)
    toolset = await harness.tools("gone", "here")
    assert names(toolset) == ["mcp__here__one"]
    assert {overview.slug: overview.unavailable for overview in toolset.servers} == {
        "gone": "MCP server not installed",
        "here": None,
    }
    assert harness.connections.discoveries == []
