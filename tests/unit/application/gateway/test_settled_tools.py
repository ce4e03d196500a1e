"""Tools of a session that are put together again only after something they are made from was
stored."""

from dataclasses import replace

import pytest

from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.toolset_builder import ToolsetBuilder
from domain.gateway.session import GatewaySession, ToolNames
from domain.identity.organization_group import OrganizationGroup
from domain.ids import ApiKeyId, GatewaySessionId, GroupId, McpServerId, OrganizationId
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind
from domain.policy.canary import CanaryToken
from domain.policy.condition import Condition
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.events.row_version import RowVersion
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    START,
    THREAD,
    a_catalog,
    a_definition,
    a_server,
    after,
    an_agent,
    an_organization,
    numbered,
)
from tests.circumstances import circumstances
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import USER
from tests.refusals import refused

SESSION = GatewaySession(
    id=GatewaySessionId(numbered("gws", 1)),
    organization_id=ORG,
    agent_id=AGENT,
    thread_id=THREAD,
    names=ToolNames.NAMESPACED,
    created_by=KEY,
    created_at=START,
    expires_at=after(3600),
)
SERVER = McpServerId("mcp_files")


LEADS = OrganizationGroup(
    id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=(USER,), created_at=START, changed_at=START
)
LEADS_READ = ToolPolicies(
    rules=(
        ("*read", ToolRule(decision=Verdict.DENY)),
        ("mcp__files__read", ToolRule(decision=Verdict.ALLOW, when=Condition(groups=("Leads",)))),
    )
)


class Harness:
    """An agent with one server, whose tools are put together over in-memory stores; `rows` is the
    number they go by."""

    def __init__(self, *, loss: ConnectionLoss = ConnectionLoss.MARK_UNHEALTHY, listed_version: int = 1) -> None:
        self.state = state = InMemoryState()
        state.organizations = {ORG: an_organization()}
        config = McpServerConfig(
            slug="files",
            kind=McpServerKind.CUSTOM,
            command="x",
            isolation=Isolation.SHARED,
            on_connection_loss=loss,
        )
        state.servers[SERVER] = a_server(SERVER, config=config)
        state.catalogs[SERVER] = replace(
            a_catalog(SERVER, tools=[a_definition("echo"), a_definition("read")]), server_version=listed_version
        )
        self.rows: int | None = 1
        organizations, agents = InMemoryOrganizationStore(state), InMemoryAgentStore(state)
        catalogs, connections = InMemoryMcpCatalogStore(state), InMemoryMcpConnections()
        self.clock = clock = FixedClock()
        self.toolsets = GatewayToolsets(
            agents=agents,
            runs=InMemoryRunStore(state, InProcessWakeups()),
            organizations=organizations,
            catalog=ToolsetBuilder(
                circumstances=circumstances(state, clock),
                native_tools={},
                displayable_tools={},
                servers=InMemoryMcpServerStore(state),
                catalogs=CatalogReader(
                    catalogs=catalogs,
                    catalog_updater=CatalogUpdater(
                        catalogs=catalogs,
                        connections=connections,
                        organizations=organizations,
                        clock=clock,
                        ids=SequentialIds(),
                    ),
                    clock=clock,
                ),
                connections=connections,
                switch=McpSwitch(enabled=True, organizations=organizations),
                organizations=organizations,
            ),
            agents_as_tools=AgentsAsTools(agents=agents, organizations=organizations),
            clock=clock,
            rows=lambda: self.rows,
        )
        self.allow(None)

    def allow(self, *tools: str | None) -> None:
        """The agent's allowlist becomes this."""
        allowlist = None if tools == (None,) else tuple(tool for tool in tools if tool is not None)
        agent = an_agent(mcp_servers=("files",), tool_allowlist=allowlist)
        self.state.agents[agent.id] = [agent]

    async def names(self, session: GatewaySession = SESSION) -> list[str]:
        """What the session has."""
        return [name for name, _ in (await self.toolsets.of(session)).tools]


@pytest.mark.requirement("C1", "F5")
async def test_a_stored_change_holds_for_the_next_request() -> None:
    harness = Harness()
    assert await harness.names() == ["mcp__files__echo", "mcp__files__read"]

    harness.allow("mcp__files__read")
    harness.rows = 2

    assert await harness.names() == ["mcp__files__read"]


async def test_tools_are_the_same_object_until_something_is_stored() -> None:
    harness = Harness()
    first = await harness.toolsets.of(SESSION)

    harness.allow("mcp__files__read")  # which nobody was told of

    assert await harness.toolsets.of(SESSION) is first


async def test_nothing_is_taken_as_unchanged_while_changes_may_be_unheard_of() -> None:
    harness = Harness()
    await harness.names()
    harness.allow("mcp__files__read")
    harness.rows = None

    assert await harness.names() == ["mcp__files__read"]


@pytest.mark.parametrize(
    ("loss", "listed_version"),
    [(ConnectionLoss.UNREGISTER, 1), (ConnectionLoss.MARK_UNHEALTHY, 0)],
    ids=["unregister", "to be listed anew"],
)
async def test_a_server_that_changes_without_a_row_is_looked_at_each_time(
    loss: ConnectionLoss, listed_version: int
) -> None:
    harness = Harness(loss=loss, listed_version=listed_version)
    await harness.names()
    harness.allow("mcp__files__read")

    assert await harness.names() == ["mcp__files__read"]


async def test_tools_of_a_runs_session_are_looked_at_each_time() -> None:
    harness = Harness()
    of_run = replace(SESSION, run_id=RUN)
    before = await harness.toolsets.of(of_run)
    harness.allow("mcp__files__read")

    assert await harness.toolsets.of(of_run) is not before


@pytest.mark.requirement("C1", "C4")
async def test_the_canary_tokens_of_a_disabled_agent_are_watched_for() -> None:
    harness = Harness()
    agent = an_agent(enabled=False, canary_tokens=(CanaryToken(id="vault", secret="canary-of-the-tests"),))
    harness.state.agents[agent.id] = [agent]

    guard = await harness.toolsets.guard_of(SESSION)

    with refused("agent_disabled"):
        await harness.toolsets.of(SESSION)
    assert guard.words("It said canary-of-the-tests.") == "It said [canary:vault]."


async def test_a_session_of_a_deleted_agent_watches_for_no_canary_tokens() -> None:
    harness = Harness()
    harness.state.agents.clear()

    assert (await harness.toolsets.guard_of(SESSION)).words("canary-of-the-tests") == "canary-of-the-tests"


def test_a_stamp_changes_with_whoever_writes_its_tables_and_is_none_while_that_is_not_known() -> None:
    now = [0.0]
    feed = RowNotifications(shared=True, monotonic=lambda: now[0])
    stamp = RowVersion("agent", "mcp_server", notifications=feed)
    assert stamp() is None

    feed.heard(feed.beat())
    seen = [stamp()]
    feed.wrote(("agent",), ORG)
    seen.append(stamp())
    feed.changed("mcp_server", OrganizationId(OTHER_ORG))
    seen.append(stamp())
    feed.wrote(("secret",), ORG)

    assert len(set(seen)) == 3
    assert stamp() == seen[-1]
    now[0] = 5.0
    assert stamp() is None


@pytest.mark.requirement("P6")
async def test_a_removed_member_loses_within_half_a_second_what_was_theirs_in_lists_and_calls() -> None:
    harness = Harness()
    agent = replace(
        an_agent(mcp_servers=("files",)),
        config=replace(an_agent(mcp_servers=("files",)).config, tool_policies=LEADS_READ),
    )
    harness.state.agents[agent.id] = [agent]
    harness.state.organization_groups[LEADS.id] = LEADS
    anns = replace(SESSION, id=GatewaySessionId(numbered("gws", 2)), created_by=ApiKeyId(USER))
    assert await harness.names(anns) == ["mcp__files__echo", "mcp__files__read"]
    assert await harness.names() == ["mcp__files__echo"], "a person outside the group"

    del harness.state.organization_groups[LEADS.id]  # of which no row of the tools tells
    harness.clock.advance(0.49)
    assert await harness.names(anns) == ["mcp__files__echo", "mcp__files__read"]
    harness.clock.advance(0.01)

    assert await harness.names(anns) == ["mcp__files__echo"]
    tools = (await harness.toolsets.of(anns)).toolset
    assert (tools.find("mcp__files__read"), tools.find_denied("mcp__files__read") is None) == (None, False)
