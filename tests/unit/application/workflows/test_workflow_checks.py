"""WorkflowChecks: what a workflow of a team may name, and what a caller is told of what it may
not."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.policy.ports import SchemaValidator
from application.secrets.ports import SecretStore
from application.system.ports import OutboundPolicy
from application.workflows.ports import Expressions
from application.workflows.workflow_checks import WorkflowChecks, place_of
from domain.identity.api_key import Principal
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.ids import AgentId, GroupId, McpServerId
from domain.workflows.faults import FaultCode
from tests.builders import ORG, START, a_server, an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import team_checks
from tests.workflow_builders import agent, entrypoint, node, workflow

pytestmark = pytest.mark.requirement("P2")

MEMBER = replace(a_principal(Role.OPERATOR), teams=frozenset({"finance"}))
OUTSIDER = replace(MEMBER, teams=frozenset({"legal"}))


class Ports:
    """An agent and a server of each of two teams and of the organization."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        for number, team in enumerate(("finance", "legal", None), start=1):
            name = team or "common"
            mine = an_agent(AgentId(f"agt_{number}"), name=name)
            self.state.agents[mine.id] = [replace(mine, config=replace(mine.config, team=team))]
            server = a_server(McpServerId(f"mcp_{number}"), slug=name)
            self.state.servers[server.id] = replace(server, config=replace(server.config, team=team))
            if team is not None:
                group = GroupId(f"grp_{team}")
                self.state.organization_groups[group] = OrganizationGroup(
                    id=group, organization_id=ORG, name=team, created_at=START, changed_at=START
                )
        self.checks = WorkflowChecks(
            expressions=mocker.create_autospec(Expressions, instance=True),
            schemas=mocker.create_autospec(SchemaValidator, instance=True),
            agents=InMemoryAgentStore(self.state),
            organizations=InMemoryOrganizationStore(self.state),
            servers=InMemoryMcpServerStore(self.state),
            secrets=mocker.create_autospec(SecretStore, instance=True),
            outbound=mocker.create_autospec(OutboundPolicy, instance=True),
            team_checks=team_checks(self.state),
        )

    async def told(
        self, named: str, *, by: Principal, team: str | None, former: str | None = None
    ) -> list[tuple[str, str, str]]:
        """Code, path and message of each fault of a workflow whose nodes have the agent and the
        server of this name."""
        call = node("call", "mcp_server", server=named, call="echo")
        definition = workflow(entrypoint(), agent("ask", named), call, "start -> ask", "ask -> call", team=team)
        checked = await self.checks.check(by, definition, former_team=former)
        return [(fault.code.value, place_of(fault, definition), fault.message) for fault in checked.faults]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.parametrize(("named", "team"), [("finance", "finance"), ("common", "finance"), ("common", None)])
async def test_a_workflow_has_agents_and_servers_of_its_team_and_of_the_organization(
    ports: Ports, named: str, team: str | None
) -> None:
    assert await ports.told(named, by=MEMBER, team=team) == []


@pytest.mark.parametrize("team", [None, "legal"])
async def test_who_sees_what_another_team_owns_is_told_so(ports: Ports, team: str | None) -> None:
    assert await ports.told("finance", by=a_principal(), team=team) == [
        ("unknown_agent", "nodes.1.config.agent", _of_finance("agent")),
        ("unknown_server", "nodes.2.config.server", _of_finance("MCP server")),
    ]


async def test_to_who_does_not_see_it_it_is_as_if_it_were_not_there(ports: Ports) -> None:
    hidden, missing = (
        await ports.told("finance", by=OUTSIDER, team=None),
        await ports.told("none", by=OUTSIDER, team=None),
    )
    assert hidden == [(code, path, message.replace("none", "finance")) for code, path, message in missing]
    assert [message for _, _, message in hidden] == [
        "There is no agent 'finance'.",
        "There is no MCP server 'finance'.",
    ]
    # A team that is not the caller's shows nothing of what it owns.
    assert (await ports.told("finance", by=OUTSIDER, team="finance"))[1:] == hidden


@pytest.mark.parametrize("team", ["finance", "unknown"])
async def test_a_team_is_a_group_that_the_caller_is_in(ports: Ports, team: str) -> None:
    assert await ports.told("common", by=OUTSIDER, team=team) == [
        (FaultCode.UNKNOWN_TEAM.value, "team", f"There is no group {team!r} that you are in.")
    ]


async def test_a_team_that_stays_is_accepted_also_when_its_group_is_gone(ports: Ports) -> None:
    assert await ports.told("common", by=a_principal(), team="gone", former="gone") == []


def _of_finance(what: str) -> str:
    return f"The {what} 'finance' belongs to the team 'finance': only its workflows use it."
