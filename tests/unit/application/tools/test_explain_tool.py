"""ExplainTool: why a tool of an agent is allowed, asked for, blocked or hidden, layer by layer."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.identity.read_circumstances import Acting
from application.tools.explain_tool import ExplainTool, ExplainToolCommand, ToolExplanation
from application.tools.explained_people import ExplainedPeople
from application.tools.tool_standing import ToolStanding
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.errors import ErrorKind, ServiceError
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.policy.layers import PolicyLayer, PolicyLayers
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from tests.builders import AGENT, ORG, a_tool, an_agent, an_organization
from tests.circumstances import circumstances
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

ECHO, PUSH = "mcp__files__echo", "mcp__git__push"
ASK = ToolPolicies(rules=((ECHO, ToolRule(decision=Verdict.REQUIRE_APPROVAL)),))
DENY = ToolPolicies(rules=(("mcp__files__*", ToolRule(decision=Verdict.DENY)),))


class Ports:
    """An agent that lists `mcp__files__echo`, in an organization that has `mcp__git__push` too."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.catalog: MockType = mocker.create_autospec(ToolsetBuilder, instance=True)
        self.unrestricted_toolsets: MockType = mocker.create_autospec(UnrestrictedToolsets, instance=True)
        self.unrestricted_toolsets.of_agent.return_value = Toolset(tools=(a_tool(ECHO, repeatable=True),))
        self.unrestricted_toolsets.of_organization.return_value = Toolset(tools=(a_tool(ECHO), a_tool(PUSH)))
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.organizations: MockType = mocker.create_autospec(OrganizationStore, instance=True)
        self.people: MockType = mocker.create_autospec(ExplainedPeople, instance=True)
        self.people.acting.return_value = a_principal(Role.VIEWER).key_id
        self.people.absence.return_value = None
        self.use(an_organization())

    def use(
        self,
        organization: Organization,
        policies: ToolPolicies | None = None,
        *,
        allowlist: tuple[str, ...] | None = None,
    ) -> None:
        """These are the organization, and the policies and the allowlist of the agent."""
        self.organizations.get.return_value = organization
        self.agents.get.return_value = an_agent(tool_allowlist=allowlist)
        self.catalog.listed_toolset.return_value = Toolset(
            tools=(a_tool(ECHO),),
            policies=PolicyLayers(
                organization=organization.tool_policies,
                agent=policies or ToolPolicies(),
                organization_allowlist=organization.tool_allowlist,
                agent_allowlist=allowlist,
            ),
        )

    async def explain(self, name: str = ECHO) -> ToolExplanation:
        explaining = ExplainTool(
            catalog=self.catalog,
            unrestricted_toolsets=self.unrestricted_toolsets,
            agents=self.agents,
            organizations=self.organizations,
            circumstances=circumstances(),
            people=self.people,
        )
        return await explaining.execute(ExplainToolCommand(principal=a_principal(Role.VIEWER), name=name, agent=AGENT))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C2")
async def test_a_tool_without_rules_is_allowed_by_default(ports: Ports) -> None:
    explained = await ports.explain()

    assert (explained.standing, explained.decided_by.layer) == (ToolStanding.ALLOWED, PolicyLayer.BUILT_IN)
    assert explained.reasons == ("Allowed, by default.",)
    assert explained.repeatable is True


@pytest.mark.requirement("C2")
async def test_the_stricter_layer_decides_and_every_layer_is_named_with_its_rules(ports: Ports) -> None:
    ports.use(replace(an_organization(), tool_policies=DENY), ASK)

    explained = await ports.explain()

    assert (explained.standing, explained.decided_by.pattern) == (ToolStanding.BLOCKED, "mcp__files__*")
    assert [(said.layer, [pattern for pattern, _ in said.rules]) for said in explained.layers] == [
        (PolicyLayer.ORGANIZATION, ["mcp__files__*"]),
        (PolicyLayer.AGENT, [ECHO]),
    ]
    assert "by the organization's rule mcp__files__*" in explained.reasons[0]


@pytest.mark.requirement("C2")
async def test_an_allowlist_without_the_tool_hides_it(ports: Ports) -> None:
    ports.use(replace(an_organization(), tool_allowlist=("mcp__files__*",)), allowlist=("mcp__files__read",))

    explained = await ports.explain()

    assert (explained.standing, explained.decided_by.layer) == (ToolStanding.HIDDEN, PolicyLayer.AGENT)
    assert [said.in_allowlist for said in explained.layers] == [True, False]


@pytest.mark.requirement("C2")
async def test_a_tool_of_the_organization_that_the_agent_does_not_list_is_hidden(ports: Ports) -> None:
    explained = await ports.explain(PUSH)

    assert (explained.tool.name, explained.standing) == (PUSH, ToolStanding.HIDDEN)
    assert explained.reasons == ("Hidden: the agent lists neither the tool nor its MCP server.",)


@pytest.mark.requirement("C2")
async def test_a_rule_says_whether_a_call_may_be_repeated_in_place_of_the_server(ports: Ports) -> None:
    ports.use(an_organization(), ToolPolicies(rules=((ECHO, ToolRule(idempotent=False)),)))

    assert (await ports.explain()).repeatable is False


async def test_an_unknown_tool_is_not_found_and_the_nearest_name_is_told(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.explain("mcp__git__pusch")

    assert raised.value.code == "tool_not_found"
    assert PUSH in raised.value.detail


async def test_a_long_name_of_an_unknown_tool_is_not_repeated_in_full(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.explain("x" * 20_000)

    assert len(raised.value.detail) < 400


@pytest.mark.requirement("C6")
async def test_an_agent_that_the_organization_does_not_have_is_not_found(ports: Ports) -> None:
    ports.agents.get.return_value = ports.agents.find.return_value = None

    with refused("agent_not_found"):
        await ports.explain()

    ports.agents.get.assert_awaited_once_with(ORG, AGENT)
    ports.unrestricted_toolsets.of_agent.assert_not_awaited()


@pytest.mark.requirement("C2")
async def test_no_server_is_asked_for_its_tools(ports: Ports) -> None:
    await ports.explain()

    ports.catalog.listed_toolset.assert_awaited_once_with(
        an_agent().config, ORG, acting=Acting(actor=a_principal(Role.VIEWER).key_id)
    )
    ports.catalog.toolset.assert_not_awaited()


@pytest.mark.requirement("P6")
async def test_for_who_may_not_be_asked_for_nothing_is_explained(ports: Ports) -> None:
    ports.people.acting.side_effect = ServiceError("role_insufficient", ErrorKind.FORBIDDEN, "This needs more.")

    with refused("role_insufficient"):
        await ports.explain()


@pytest.mark.requirement("P6")
async def test_all_is_hidden_for_who_does_not_see_the_agent(ports: Ports) -> None:
    ports.use(an_organization(), ASK)
    ports.people.absence.return_value = "Hidden: it is not there."

    explained = await ports.explain()

    assert (explained.standing, explained.reasons) == (ToolStanding.HIDDEN, ("Hidden: it is not there.",))
    assert explained.decided_by.layer is PolicyLayer.AGENT


@pytest.mark.parametrize(
    "failing", ["agents.get", "unrestricted_toolsets.of_agent", "catalog.listed_toolset", "organizations.get"]
)
async def test_a_failure_of_a_port_reaches_the_caller(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.explain()
