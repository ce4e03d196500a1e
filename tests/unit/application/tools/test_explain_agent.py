"""ExplainAgent: what becomes of each tool of an agent, and what of its policies has no effect."""

from dataclasses import replace
from datetime import datetime

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import OrganizationStore
from application.tools.explain_agent import ExplainAgent, ExplainAgentCommand, ExplainedAgent, PolicyWarning
from application.tools.explained_people import ExplainedPeople
from application.tools.tool_standing import ToolStanding
from application.tools.toolset import ServerOverview, Toolset
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.agents.agent import AgentSettings
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.policy.condition import Condition
from domain.policy.layers import PolicyLayer, Source
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.tools.capabilities import ToolType
from tests.builders import ORG, START, a_tool, an_organization
from tests.circumstances import circumstances
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

ECHO, READ = "mcp__files__echo", "mcp__files__read"
SETTINGS = AgentSettings(name="researcher", model="scripted:demo.yaml", mcp_servers=("files",))
ASK, DENY = ToolRule(decision=Verdict.REQUIRE_APPROVAL), ToolRule(decision=Verdict.DENY)


class Ports:
    """An agent with two tools of one server, in an organization without policies."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.unrestricted_toolsets: MockType = mocker.create_autospec(UnrestrictedToolsets, instance=True)
        self.unrestricted_toolsets.of_agent.return_value = Toolset(tools=(a_tool(ECHO), a_tool(READ)))
        self.organizations: MockType = mocker.create_autospec(OrganizationStore, instance=True)
        self.organizations.get.return_value = an_organization()
        self.people: MockType = mocker.create_autospec(ExplainedPeople, instance=True)
        self.people.absence.return_value = None

    async def explain(
        self,
        settings: AgentSettings = SETTINGS,
        *,
        role: Role = Role.VIEWER,
        person: ApiKeyId | None = None,
        at: datetime | None = None,
    ) -> ExplainedAgent:
        explaining = ExplainAgent(
            unrestricted_toolsets=self.unrestricted_toolsets,
            organizations=self.organizations,
            circumstances=circumstances(),
            people=self.people,
        )
        self.people.acting.return_value = person or a_principal(role).key_id
        return await explaining.execute(
            ExplainAgentCommand(principal=a_principal(role), settings=settings, person=person, at=at)
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def with_rules(**rules: ToolRule) -> AgentSettings:
    return replace(SETTINGS, tool_policies=ToolPolicies(rules=tuple(rules.items())))


def standings(explained: ExplainedAgent) -> dict[str, ToolStanding]:
    return {entry.tool.name: entry.standing for entry in explained.tools}


@pytest.mark.requirement("C2")
async def test_tools_are_explained_as_calls_are_decided(ports: Ports) -> None:
    explained = await ports.explain(with_rules(**{ECHO: ASK, READ: DENY}))

    assert standings(explained) == {ECHO: ToolStanding.ASKED_FOR, READ: ToolStanding.BLOCKED}
    assert explained.tools[0].decided_by == Source(layer=PolicyLayer.AGENT, pattern=ECHO)
    assert "by the agent's rule mcp__files__echo" in explained.tools[0].sentence
    assert explained.warnings == ()


@pytest.mark.requirement("C2")
async def test_the_policies_and_the_allowlist_of_the_organization_hold_too(ports: Ports) -> None:
    ports.organizations.get.return_value = replace(
        an_organization(), tool_policies=ToolPolicies(rules=((ECHO, DENY),)), tool_allowlist=(ECHO,)
    )

    assert standings(await ports.explain()) == {ECHO: ToolStanding.BLOCKED, READ: ToolStanding.HIDDEN}


@pytest.mark.requirement("P6")
async def test_all_is_hidden_for_who_does_not_see_the_agent(ports: Ports) -> None:
    ports.people.absence.return_value = "Hidden: it is not there."

    explained = await ports.explain(with_rules(**{ECHO: ASK}), person=ApiKeyId("usr_dan"))

    assert standings(explained) == {ECHO: ToolStanding.HIDDEN, READ: ToolStanding.HIDDEN}
    assert {each.sentence for each in explained.tools} == {"Hidden: it is not there."}


@pytest.mark.requirement("C2")
async def test_restrictions_of_a_tool_are_sentences(ports: Ports) -> None:
    explained = await ports.explain(with_rules(**{ECHO: ToolRule(max_calls=3)}))

    assert explained.tools[0].restrictions == ("At most 3 calls in a run, by the agent's rule mcp__files__echo.",)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("settings", "pattern", "words"),
    [
        (with_rules(mcp__files__ecco=ASK), "mcp__files__ecco", "did you mean 'mcp__files__echo'?"),
        (replace(SETTINGS, tool_allowlist=("mcp__files__*", "nothing")), None, "nothing of the allowlist fits no tool"),
        (
            with_rules(**{"mcp__files__*": ASK, ECHO: ASK, READ: ASK}),
            "mcp__files__*",
            "Holds for no tool: all that it fits are decided",
        ),
        (with_rules(**{"mcp__files__*": DENY, ECHO: ToolRule(max_calls=3)}), ECHO, "Has no effect in max_calls"),
        (
            with_rules(**{"mcp__files__*": ToolRule(max_calls=3), ECHO: ASK}),
            "mcp__files__*",
            "Max_calls not in force for mcp__files__echo",
        ),
    ],
    ids=["no tool", "allowlist", "more specific", "denied", "not repeated"],
)
async def test_what_has_no_effect_is_warned_about(
    ports: Ports, settings: AgentSettings, pattern: str | None, words: str
) -> None:
    [warning] = (await ports.explain(settings)).warnings

    assert isinstance(warning, PolicyWarning)
    assert warning.pattern == pattern
    assert words in warning.message


@pytest.mark.requirement("C2")
async def test_a_rule_that_the_organization_has_already_is_warned_about(ports: Ports) -> None:
    ports.organizations.get.return_value = replace(an_organization(), tool_policies=ToolPolicies(rules=((ECHO, ASK),)))

    [warning] = (await ports.explain(with_rules(**{ECHO: ASK}))).warnings

    assert "by the organization's rule mcp__files__echo, and layers only tighten each other" in warning.message


async def test_a_server_whose_tools_are_not_known_is_named_with_the_reason_and_its_rules_are_not_warned_about(
    ports: Ports,
) -> None:
    away = ServerOverview(slug="git", tools=(), unavailable="it was never listed")
    ports.unrestricted_toolsets.of_agent.return_value = Toolset(tools=(a_tool(ECHO),), servers=(away,))

    explained = await ports.explain(with_rules(mcp__git__push=ASK))

    assert (explained.unavailable, explained.warnings) == ((("git", "it was never listed"),), ())


async def test_of_unsaved_settings_what_exists_counts(ports: Ports) -> None:
    draft = replace(SETTINGS, name="", model="", tools=("code_execution", "time_travel"), agents=("writer", "writer"))

    await ports.explain(draft)

    organization_id, config = ports.unrestricted_toolsets.of_agent.await_args.args
    assert organization_id == ORG
    assert (config.tools, config.mcp_servers, config.agents) == ((ToolType.CODE_EXECUTION,), ("files",), ("writer",))


@pytest.mark.parametrize("failing", ["unrestricted_toolsets.of_agent", "organizations.get"])
async def test_a_failure_of_a_port_reaches_the_caller(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.explain()


@pytest.mark.requirement("P6")
async def test_the_tools_of_a_person_are_explained_with_the_conditions_that_hold_and_those_that_do_not(
    ports: Ports,
) -> None:
    allow = ToolRule(decision=Verdict.ALLOW, when=Condition(people=("usr_ann",), hours="08:00-18:00"))
    settings = with_rules(**{"mcp__*": DENY, ECHO: allow})

    ann = (await ports.explain(settings, person=ApiKeyId("usr_ann"))).tools[0]
    assert (ann.standing, ann.restrictions) == (
        ToolStanding.ALLOWED,
        (f"The agent's rule {ECHO}: its condition holds.",),
    )
    ben = (await ports.explain(settings, person=ApiKeyId("usr_ben"))).tools[0]
    assert (ben.standing, ben.restrictions) == (
        ToolStanding.BLOCKED,
        (f"The agent's rule {ECHO} does not apply: usr_ben is not one of its people, nor in one of its groups.",),
    )
    late = (await ports.explain(settings, person=ApiKeyId("usr_ann"), at=START.replace(hour=18))).tools[0]
    assert late.restrictions == (f"The agent's rule {ECHO} does not apply: it is 18:00 in UTC, outside 08:00-18:00.",)
    assert (await ports.explain(settings)).tools[0].standing is ToolStanding.BLOCKED, "without a person: the caller"
