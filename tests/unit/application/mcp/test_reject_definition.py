"""RejectDefinition: who keeps a tool out, which definition, and what is audited."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpCatalogStore, McpServerStore
from application.mcp.reject_definition import RejectDefinition, RejectDefinitionCommand
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.catalog import MAX_REASON, Rejection
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned
from tests.builders import ORG, SERVER, START, a_catalog, a_definition, a_server
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below

OLD = a_definition("echo")
CHANGED = a_definition("echo", description="Says it to everyone.")
REASON = "It asks for the token."

pytestmark = pytest.mark.requirement("B13", "U6")


class Ports:
    """The server `files`: the tool `echo` has changed since it was approved, `same` is approved."""

    def __init__(self) -> None:
        self.state = a_state_with_servers(a_server())
        same = a_definition("same")
        before, now = a_catalog(tools=(OLD, same)), a_catalog(tools=(CHANGED, same))
        self.state.catalogs[SERVER] = pinned(now, before)
        self.catalogs: McpCatalogStore = InMemoryMcpCatalogStore(self.state)

    async def reject(
        self,
        tool: str = "echo",
        *,
        digest: str | None = None,
        reason: str | None = None,
        by: Principal | None = None,
        servers: MockType | None = None,
    ) -> PinnedTool:
        rejecting = RejectDefinition(
            servers=servers or InMemoryMcpServerStore(self.state),
            catalogs=self.catalogs,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        return await rejecting.execute(
            RejectDefinitionCommand(
                principal=by or a_principal(), server="files", tool=tool, digest=digest, reason=reason
            )
        )

    def assert_nothing_is_rejected(self) -> None:
        assert dict(self.state.catalogs[SERVER].rejected) == {}
        assert self.state.audit == {}


@pytest.fixture
def ports() -> Ports:
    return Ports()


@pytest.mark.parametrize("digest", [CHANGED.digest, None])
async def test_the_tool_stays_in_quarantine_and_waits_for_nobody(ports: Ports, digest: str | None) -> None:
    found = await ports.reject(digest=digest, reason=REASON)

    rejection = Rejection(by="key_admin", at=START, reason=REASON)
    assert (found.state, found.approved, found.rejection) == (DefinitionState.REJECTED, OLD, rejection)
    catalog = ports.state.catalogs[SERVER]
    assert (dict(catalog.rejected), catalog.awaiting_approval) == ({"echo": rejection}, 0)
    assert [tool.name for tool in catalog.usable] == ["same"]


@pytest.mark.requirement("C5")
async def test_a_rejection_is_audited_with_its_definition_and_reason(ports: Ports) -> None:
    await ports.reject(reason=REASON)

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.MCP_SERVER_TOOL_REJECTED, "key_admin", SERVER)
    assert (entry.organization_id, entry.server_id, entry.at, entry.tool) == (ORG, SERVER, START, "mcp__files__echo")
    about = {"slug": "files", "name": "echo", "change": "changed", "digest": CHANGED.digest}
    assert entry.details == {**about, "reason": REASON}


async def test_a_rejected_tool_is_not_rejected_again(ports: Ports) -> None:
    await ports.reject(reason=REASON)

    again = await ports.reject(reason="Another.")

    assert again.rejection == Rejection(by="key_admin", at=START, reason=REASON)
    assert len(ports.state.audit) == 1


async def test_an_approved_tool_is_not_rejected(ports: Ports) -> None:
    with refused("mcp_tool_approved"):
        await ports.reject("same")

    ports.assert_nothing_is_rejected()


@pytest.mark.parametrize("digest", [OLD.digest, "sha256:0"], ids=["the approved one", "unknown"])
async def test_only_the_definition_that_was_read_is_rejected(ports: Ports, digest: str) -> None:
    with refused("mcp_tool_changed"):
        await ports.reject(digest=digest)

    ports.assert_nothing_is_rejected()


async def test_a_reason_has_a_bound(ports: Ports) -> None:
    with refused("reason_too_long"):
        await ports.reject(reason="x" * (MAX_REASON + 1))

    ports.assert_nothing_is_rejected()
    await ports.reject(reason="x" * MAX_REASON)


async def test_a_tool_that_changes_while_it_is_rejected_waits_on(ports: Ports, mocker: MockerFixture) -> None:
    catalogs = ports.catalogs = mocker.create_autospec(McpCatalogStore, instance=True)
    catalogs.load.return_value = replace(a_catalog(tools=(CHANGED,)), quarantined={"echo": OLD})
    catalogs.reject.return_value = False

    with refused("mcp_tool_changed"):
        await ports.reject(digest=CHANGED.digest)

    assert catalogs.reject.await_args.args[:3] == (ORG, SERVER, CHANGED)


async def test_a_tool_that_is_not_listed_is_not_rejected(ports: Ports) -> None:
    with refused("mcp_tool_not_found"):
        await ports.reject("search")

    ports.assert_nothing_is_rejected()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_reject(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.reject(by=a_principal(role))

    ports.assert_nothing_is_rejected()


@pytest.mark.requirement("C6")
async def test_a_tool_of_another_organization_is_not_rejected(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.reject(by=a_stranger())

    ports.assert_nothing_is_rejected()


async def test_a_server_that_cannot_be_read_rejects_nothing(ports: Ports, mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.reject(servers=servers)

    ports.assert_nothing_is_rejected()
