"""ApproveDefinition: who takes a tool out of quarantine, which definition, and what is audited."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.approve_definition import ApproveDefinition, ApproveDefinitionCommand
from application.mcp.ports import McpCatalogStore, McpServerStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned
from tests.builders import ORG, SERVER, START, a_catalog, a_definition, a_server
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

OLD = a_definition("echo")
CHANGED = a_definition("echo", description="Says it to everyone.")
NEW = a_definition("zip")

pytestmark = pytest.mark.requirement("B13")


class Ports:
    """The server `files`: the tool `echo` has changed since it was approved, `zip` is new, `same`
    is approved."""

    def __init__(self) -> None:
        self.state = a_state_with_servers(a_server())
        same = a_definition("same")
        before, now = a_catalog(tools=(OLD, same)), a_catalog(tools=(CHANGED, NEW, same))
        self.state.catalogs[SERVER] = pinned(now, before)
        self.catalogs: McpCatalogStore = InMemoryMcpCatalogStore(self.state)

    async def approve(
        self, tool: str, *, digest: str | None = None, by: Principal | None = None, servers: MockType | None = None
    ) -> PinnedTool:
        approving = ApproveDefinition(
            servers=servers or InMemoryMcpServerStore(self.state),
            catalogs=self.catalogs,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        command = ApproveDefinitionCommand(principal=by or a_principal(), server="files", tool=tool, digest=digest)
        return await approving.execute(command)

    @property
    def quarantined(self) -> set[str]:
        return set(self.state.catalogs[SERVER].quarantined)

    def assert_nothing_is_approved(self) -> None:
        assert self.quarantined == {"echo", "zip"}
        assert self.state.audit == {}


@pytest.fixture
def ports() -> Ports:
    return Ports()


@pytest.mark.parametrize("definition", [CHANGED, NEW], ids=["changed", "new"])
@pytest.mark.parametrize("with_digest", [True, False])
async def test_the_present_definition_becomes_the_approved_one(
    ports: Ports, definition: McpToolDefinition, with_digest: bool
) -> None:
    digest = definition.digest if with_digest else None

    approved = await ports.approve(definition.name, digest=digest)

    assert (approved.approved, approved.state) == (definition, DefinitionState.APPROVED)
    assert ports.quarantined == {"echo", "zip"} - {definition.name}


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(("definition", "change"), [(CHANGED, "changed"), (NEW, "new")])
async def test_an_approval_is_audited_with_the_definition_that_was_approved(
    ports: Ports, definition: McpToolDefinition, change: str
) -> None:
    await ports.approve(definition.name)

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.MCP_SERVER_TOOL_APPROVED,
        "key_admin",
        SERVER,
    )
    assert (entry.organization_id, entry.server_id, entry.at) == (ORG, SERVER, START)
    assert entry.tool == f"mcp__files__{definition.name}"
    assert entry.details == {
        "slug": "files",
        "name": definition.name,
        "change": change,
        "digest": definition.digest,
    }


async def test_approving_an_approved_tool_changes_nothing(ports: Ports) -> None:
    approved = await ports.approve("same")

    assert approved.state is DefinitionState.APPROVED
    ports.assert_nothing_is_approved()


@pytest.mark.parametrize("digest", [OLD.digest, "sha256:0"], ids=["the approved one", "unknown"])
async def test_only_the_definition_that_was_read_is_approved(ports: Ports, digest: str) -> None:
    with refused("mcp_tool_changed"):
        await ports.approve("echo", digest=digest)

    ports.assert_nothing_is_approved()


async def test_a_tool_that_changes_while_it_is_approved_stays_in_quarantine(
    ports: Ports, mocker: MockerFixture
) -> None:
    catalogs = ports.catalogs = mocker.create_autospec(McpCatalogStore, instance=True)
    catalogs.load.return_value = replace(a_catalog(tools=(CHANGED,)), quarantined={"echo": OLD})
    catalogs.approve.return_value = False

    with refused("mcp_tool_changed"):
        await ports.approve("echo", digest=CHANGED.digest)

    assert catalogs.approve.await_args.args[:3] == (ORG, SERVER, CHANGED)


async def test_a_tool_that_is_not_listed_is_not_approved(ports: Ports) -> None:
    with refused("mcp_tool_not_found"):
        await ports.approve("search")

    ports.assert_nothing_is_approved()


async def test_a_tool_of_a_server_that_was_never_listed_is_not_approved(ports: Ports) -> None:
    ports.state.catalogs.clear()

    with refused("mcp_tool_not_found"):
        await ports.approve("echo")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_approve(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.approve("echo", by=a_principal(role))

    ports.assert_nothing_is_approved()


@pytest.mark.requirement("C6")
async def test_a_tool_of_another_organization_is_not_approved(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.approve("echo", by=a_stranger())

    ports.assert_nothing_is_approved()


async def test_a_server_that_cannot_be_read_approves_nothing(ports: Ports, mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.approve("echo", servers=servers)

    ports.assert_nothing_is_approved()


@pytest.mark.parametrize("method", ["load", "approve"])
async def test_an_approval_that_cannot_be_stored_is_not_reported(
    ports: Ports, mocker: MockerFixture, method: str
) -> None:
    catalogs = ports.catalogs = mocker.create_autospec(McpCatalogStore, instance=True)
    catalogs.load.return_value = replace(a_catalog(tools=(CHANGED,)), quarantined={"echo": OLD})
    getattr(catalogs, method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.approve("echo")
