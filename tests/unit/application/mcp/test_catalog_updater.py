"""CatalogUpdater: which listed tools are approved, which wait in quarantine, and what is audited of
it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.catalog_updater import AUDITED_TOOLS, CatalogUpdater
from application.mcp.ports import ConnectionScope
from application.system.turns import SLICE_S
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import FirstUse
from tests.builders import ORG, SERVER, a_catalog, a_definition, a_server, after, an_organization
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.slices import rests
from tests.unit.application.actors import a_principal

ECHO = a_definition("echo")
CHANGED = a_definition("echo", description="Says it to everyone.")
NEW = a_definition("zip")

pytestmark = pytest.mark.requirement("B13")


class RacingStore(InMemoryMcpCatalogStore):
    """A store in which somebody else stores a catalog just before the first save."""

    def __init__(self, state: InMemoryState) -> None:
        super().__init__(state)
        self.meanwhile: McpCatalog | None = None
        self.same: list[bool] = []

    async def save(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...] = (),
        *,
        has_same_definitions: bool = False,
    ) -> bool:
        self.same.append(has_same_definitions)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            stored = await self.load(organization_id, catalog.server_id)
            assert await super().save(
                organization_id, replace(meanwhile, revision=0 if stored is None else stored.revision)
            )
        return await super().save(organization_id, catalog, audit)


class Harness:
    """One registered server over in-memory tables."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.server = self.state.servers[SERVER] = a_server()
        self.state.organizations[ORG] = an_organization()
        self.connections = InMemoryMcpConnections({"files": InMemoryMcpServer(tools={"echo": text_reply("hi")})})
        self.store = RacingStore(self.state)
        clock, ids = StepClock(), SequentialIds()
        self.catalogs = CatalogUpdater(
            catalogs=self.store,
            connections=self.connections,
            organizations=InMemoryOrganizationStore(self.state),
            clock=clock,
            ids=ids,
        )

    async def lists(self, *tools: McpToolDefinition, at: float = 0, server_version: int = 1) -> McpCatalog:
        listed = a_catalog(tools=tools, taken_at=after(at), server_version=server_version)
        return await self.catalogs.store(self.server, listed)

    async def quarantined(self) -> list[str]:
        stored = await self.store.load(ORG, SERVER)
        return [] if stored is None else list(stored.quarantined)

    def audit(self) -> list[tuple[str, str, str | None, object]]:
        """Action, actor, tool and what happened to it, in order."""
        return [
            (entry.action.value, entry.actor, entry.tool, entry.details.get("change"))
            for entry in self.state.audit.values()
        ]


async def test_the_first_list_is_approved_and_what_comes_after_it_is_not() -> None:
    harness = Harness()
    assert (await harness.lists(ECHO)).usable == (ECHO,)
    assert (await harness.lists(CHANGED, NEW)).usable == ()
    assert (await harness.lists(CHANGED, NEW)).usable == ()
    assert harness.audit() == [
        ("mcp_server.tool_quarantined", "system", "mcp__files__echo", "changed"),
        ("mcp_server.tool_quarantined", "system", "mcp__files__zip", "new"),
    ]


HIDING = replace(NEW, description="Packs files.\U000e0041")


@pytest.mark.requirement("S5")
async def test_a_first_definition_that_hides_text_waits_and_the_audit_says_why() -> None:
    harness = Harness()
    assert (await harness.lists(ECHO, HIDING)).usable == (ECHO,)
    (entry,) = harness.state.audit.values()
    assert (entry.tool, entry.details["change"], entry.details["hidden_text"]) == ("mcp__files__zip", "new", True)


@pytest.mark.requirement("S5")
async def test_all_first_definitions_wait_where_the_organization_reviews_them() -> None:
    harness = Harness()
    harness.state.organizations[ORG] = replace(an_organization(), first_use=FirstUse.REVIEW)
    assert (await harness.lists(ECHO, NEW)).usable == ()
    assert await harness.quarantined() == ["echo", "zip"]


@pytest.mark.requirement("S5")
async def test_the_first_definitions_of_a_trusted_server_do_not_wait() -> None:
    harness = Harness()
    harness.state.organizations[ORG] = replace(an_organization(), first_use=FirstUse.REVIEW)
    harness.server = replace(harness.server, config=replace(harness.server.config, trusted=True))
    assert (await harness.lists(ECHO, HIDING)).usable == (ECHO, HIDING)


async def test_the_first_definitions_of_an_organization_that_is_gone_wait() -> None:
    harness = Harness()
    harness.state.organizations.clear()
    assert (await harness.lists(ECHO)).usable == ()


async def test_an_admin_who_lists_approves_nothing_by_it() -> None:
    harness = Harness()
    scope = ConnectionScope(organization_id=ORG)
    for tools in (["echo"], ["echo", "zip"]):
        harness.connections.servers["files"].tools = {name: text_reply("hi") for name in tools}
        await harness.catalogs.relist(harness.server, scope, timeout_s=1, principal=a_principal())
    assert await harness.quarantined() == ["zip"]
    assert harness.audit() == [("mcp_server.tool_quarantined", "key_admin", "mcp__files__zip", "new")]


async def test_a_list_that_is_older_than_what_is_kept_is_dropped() -> None:
    harness = Harness()
    await harness.lists(ECHO, at=5)
    assert (await harness.lists(ECHO, NEW, at=4)).tools == (ECHO,)
    await harness.lists(ECHO, at=5, server_version=2)
    assert (await harness.lists(ECHO, NEW, at=9, server_version=1)).tools == (ECHO,)
    assert await harness.quarantined() == []


async def test_a_list_that_somebody_else_was_faster_with_is_held_against_theirs() -> None:
    harness = Harness()
    harness.store.meanwhile = a_catalog(tools=(ECHO,))
    assert (await harness.lists(CHANGED, at=1)).quarantined == {"echo": ECHO}
    harness.store.meanwhile = a_catalog(tools=(ECHO,), taken_at=after(9))
    assert (await harness.lists(NEW, at=2)).tools == (ECHO,)


async def test_what_a_server_that_is_gone_listed_is_dropped() -> None:
    harness = Harness()
    await harness.lists(ECHO)
    del harness.state.servers[SERVER]
    await harness.lists(CHANGED)
    assert harness.audit() == []


async def test_a_flood_of_new_tools_does_not_flood_the_audit_trail() -> None:
    harness = Harness()
    await harness.lists(ECHO)
    await harness.lists(ECHO, *(a_definition(f"tool{number:04}") for number in range(AUDITED_TOOLS + 23)))
    entries = list(harness.state.audit.values())
    assert len(entries) == AUDITED_TOOLS + 1
    assert (entries[-1].tool, entries[-1].details["further_tools"]) == (None, 23)


async def test_definitions_that_did_not_change_are_not_stored_again() -> None:
    harness = Harness()
    await harness.lists(a_definition("a"), a_definition("b"), at=1)
    await harness.lists(a_definition("a"), a_definition("b"), at=2)
    await harness.lists(a_definition("a"), at=3)
    await harness.lists(a_definition("a"), at=4)
    await harness.lists(a_definition("a", description="New."), at=5)
    await harness.lists(a_definition("a", description="New."), at=6)
    assert harness.store.same == [False, True, False, True, False, True]


@pytest.mark.requirement("S3")
async def test_others_run_between_the_tools_of_a_long_list(mocker: MockerFixture) -> None:
    harness = Harness()
    tools = tuple(a_definition(f"tool_{number:02}") for number in range(50))
    await harness.lists(*tools)
    rest = rests(mocker, (number * SLICE_S * 2 for number in range(1_000)))
    await harness.lists(*tools, at=1)
    assert rest.await_count == 3 * len(tools)  # the stored ones, the listed ones, and whether they differ
