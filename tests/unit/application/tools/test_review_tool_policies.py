"""ReviewToolPolicies: what a saved policy names that is not there, and which of its rules have no
effect."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture, MockType

from application.tools.review_tool_policies import MAX_WARNINGS, ReviewToolPolicies, ReviewToolPoliciesCommand
from application.tools.toolset import ServerOverview, Toolset
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.agents.agent import Agent
from domain.identity.organization import Organization
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.identity.user_limits import UserLimits
from domain.ids import GroupId
from domain.policy.approvers import Approvers
from domain.policy.condition import Condition
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from tests.builders import KEY, ORG, OTHER_ORG, START, a_key, a_tool, an_agent, an_organization
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.people_builders import USER, a_user
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

ECHO = "mcp__files__echo"
ASK = ToolRule(decision=Verdict.REQUIRE_APPROVAL)
KNOWN = Toolset(tools=(a_tool(ECHO),))


@pytest.fixture
def unrestricted_toolsets(mocker: MockerFixture) -> MockType:
    known: MockType = mocker.create_autospec(UnrestrictedToolsets, instance=True)
    known.of_agent.return_value = known.of_organization.return_value = KNOWN
    return known


async def review(
    unrestricted_toolsets: MockType,
    saved: Agent | Organization,
    *,
    role: Role = Role.ADMIN,
    state: InMemoryState | None = None,
) -> tuple[str, ...]:
    command = ReviewToolPoliciesCommand(principal=a_principal(role), saved=saved)
    tables = state or InMemoryState()
    reviewing = ReviewToolPolicies(
        unrestricted_toolsets=unrestricted_toolsets,
        memberships=InMemoryOrganizationGroupStore(tables),
        identities=InMemoryIdentityStore(tables),
        users=InMemoryUserStore(tables),
        organizations=InMemoryOrganizationStore(tables),
        known_users=InMemoryOrganizationGroupStore(tables),
    )
    return await reviewing.execute(command)


def an_agent_with(*rules: tuple[str, ToolRule], allowlist: tuple[str, ...] | None = None) -> Agent:
    agent = an_agent(tool_allowlist=allowlist)
    return replace(agent, config=replace(agent.config, tool_policies=ToolPolicies(rules=rules)))


def an_organization_with(*rules: tuple[str, ToolRule]) -> Organization:
    return replace(an_organization(), tool_policies=ToolPolicies(rules=rules))


@pytest.mark.requirement("P2")
async def test_budgets_and_limits_of_users_who_do_not_exist_are_warned_about(unrestricted_toolsets: MockType) -> None:
    state = InMemoryState()
    state.users[USER] = a_user()
    saved = replace(
        an_organization(),
        user_daily_budgets_usd={USER: Decimal(1), "usr_nope": Decimal(1)},
        limits_of_users={USER: UserLimits(max_active_runs=1), "usr_gone": UserLimits(max_active_runs=1)},
    )
    said = ("user_daily_budgets_usd: no user has the id usr_nope", "limits_of_users: no user has the id usr_gone")

    assert await review(unrestricted_toolsets, saved, state=state) == said
    with_rule = replace(saved, tool_policies=ToolPolicies(rules=(("mcp__x__y", ASK),)))
    assert (await review(unrestricted_toolsets, with_rule, state=state))[-2:] == said


@pytest.mark.requirement("C2")
async def test_many_users_who_do_not_exist_hide_no_warning_about_rules(unrestricted_toolsets: MockType) -> None:
    rule, budgets = ("mcp__files__ecco", ASK), {f"usr_{number}": Decimal(1) for number in range(MAX_WARNINGS)}
    saved = replace(an_organization_with(rule), user_daily_budgets_usd=budgets)

    said = await review(unrestricted_toolsets, saved)
    assert (len(said), said[0].partition(":")[0]) == (MAX_WARNINGS, "tool_policies.mcp__files__ecco")


@pytest.mark.requirement("C2")
async def test_an_entry_that_fits_no_tool_is_warned_about_with_the_nearest_name(
    unrestricted_toolsets: MockType,
) -> None:
    saved = an_agent_with(("mcp__files__ecco", ASK), (ECHO, ASK), allowlist=(ECHO, "xyz"))

    assert await review(unrestricted_toolsets, saved) == (
        "tool_policies.mcp__files__ecco: no tool of this agent has that name; did you mean 'mcp__files__echo'?",
        "tool_allowlist.xyz: no tool of this agent has that name",
    )


@pytest.mark.requirement("C2")
async def test_entries_of_an_organization_are_compared_with_all_its_tools(unrestricted_toolsets: MockType) -> None:
    assert await review(unrestricted_toolsets, an_organization_with((ECHO, ASK))) == ()

    unrestricted_toolsets.of_organization.assert_awaited_once_with(ORG)
    unrestricted_toolsets.of_agent.assert_not_awaited()


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("pattern", ["mcp__git__push", "mcp__*"])
async def test_an_entry_that_may_mean_a_tool_of_an_unlisted_server_is_not_warned_about(
    unrestricted_toolsets: MockType, pattern: str
) -> None:
    unlisted = ServerOverview(slug="git", tools=(), unavailable="it was never listed")
    unrestricted_toolsets.of_agent.return_value = Toolset(tools=(), servers=(unlisted,))

    assert await review(unrestricted_toolsets, an_agent_with((pattern, ASK))) == ()


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((("mcp__files__*", ASK), (ECHO, ASK)), "holds for no tool"),
        (
            (("mcp__files__*", ToolRule(decision=Verdict.DENY)), (ECHO, ToolRule(max_calls=3))),
            "has no effect in max_calls",
        ),
    ],
    ids=["wholly", "in a part"],
)
async def test_a_rule_without_effect_is_warned_about(
    unrestricted_toolsets: MockType, rules: tuple[tuple[str, ToolRule], ...], words: str
) -> None:
    [warning] = await review(unrestricted_toolsets, an_agent_with(*rules))

    assert words in warning


@pytest.mark.requirement("C2")
async def test_a_rule_that_another_replaces_for_some_tools_is_warned_about(unrestricted_toolsets: MockType) -> None:
    unrestricted_toolsets.of_agent.return_value = Toolset(tools=(a_tool(ECHO), a_tool("mcp__files__read")))

    [warning] = await review(
        unrestricted_toolsets, an_agent_with(("mcp__files__*", ToolRule(max_calls=3)), (ECHO, ASK))
    )

    assert "max_calls not in force for mcp__files__echo" in warning


async def test_no_more_than_fifty_warnings_are_given(unrestricted_toolsets: MockType) -> None:
    saved = an_agent_with(*((f"nothing_{number}", ASK) for number in range(MAX_WARNINGS + 1)))

    assert len(await review(unrestricted_toolsets, saved)) == MAX_WARNINGS


async def test_without_policies_nothing_is_looked_up(unrestricted_toolsets: MockType) -> None:
    assert await review(unrestricted_toolsets, an_agent()) == ()

    unrestricted_toolsets.of_agent.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_tools_of_another_organization_are_not_looked_at(unrestricted_toolsets: MockType) -> None:
    saved = replace(an_agent_with(("nothing", ASK)), organization_id=OTHER_ORG)

    assert await review(unrestricted_toolsets, saved) == ()

    unrestricted_toolsets.of_agent.assert_not_awaited()


@pytest.mark.requirement("C6")
async def test_an_operator_reviews_nothing(unrestricted_toolsets: MockType) -> None:
    with refused("role_insufficient"):
        await review(unrestricted_toolsets, an_agent_with(("nothing", ASK)), role=Role.OPERATOR)

    unrestricted_toolsets.of_agent.assert_not_awaited()


@pytest.mark.parametrize(
    "saved", [an_agent_with((ECHO, ASK)), an_organization_with((ECHO, ASK))], ids=["agent", "organization"]
)
async def test_tools_that_cannot_be_read_give_no_warnings(
    unrestricted_toolsets: MockType, saved: Agent | Organization
) -> None:
    unrestricted_toolsets.of_agent.side_effect = unrestricted_toolsets.of_organization.side_effect = storage_away()

    with refused("storage_unavailable"):
        await review(unrestricted_toolsets, saved)


@pytest.mark.requirement("P2")
async def test_approvers_that_do_not_exist_are_warned_about(unrestricted_toolsets: MockType) -> None:
    state = InMemoryState()
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="Leads", created_at=START, changed_at=START
    )
    state.organization_groups[group.id] = group
    state.users[USER], state.keys[KEY] = a_user(), a_key(KEY)
    rule = replace(ASK, approvers=Approvers(people=(USER, KEY, "usr_gone", "key_gone"), groups=("Leads", "Finance")))
    for saved in (an_agent_with((ECHO, rule)), an_organization_with((ECHO, rule))):
        assert await review(unrestricted_toolsets, saved, state=state) == (
            f"tool_policies.{ECHO}: approvers: no group has the name 'Finance'",
            f"tool_policies.{ECHO}: approvers: no user or API key has the id usr_gone",
            f"tool_policies.{ECHO}: approvers: no user or API key has the id key_gone",
        )


@pytest.mark.requirement("P6")
async def test_groups_and_people_of_conditions_that_do_not_exist_are_warned_about(
    unrestricted_toolsets: MockType,
) -> None:
    state = InMemoryState()
    state.users[USER], state.keys[KEY] = a_user(), a_key(KEY)
    when = Condition(groups=("Finance",), people=(USER, KEY, "usr_gone", "key_gone"))
    saved = an_agent_with((ECHO, replace(ASK, when=when)))
    assert await review(unrestricted_toolsets, saved, state=state) == (
        f"tool_policies.{ECHO}: when: no group has the name 'Finance'",
        f"tool_policies.{ECHO}: when: no user or API key has the id usr_gone",
        f"tool_policies.{ECHO}: when: no user or API key has the id key_gone",
    )


@pytest.mark.requirement("P6")
async def test_a_rule_with_a_condition_leaves_no_other_without_effect(unrestricted_toolsets: MockType) -> None:
    rules = (("mcp__files__*", replace(ASK, max_calls=3)), (ECHO, replace(ASK, when=Condition(hours="08:00-18:00"))))
    assert await review(unrestricted_toolsets, an_agent_with(*rules)) == ()


FOR_LEADS = ToolRule(decision=Verdict.ALLOW, when=Condition(people=(USER,)))
OPEN = "tool_policies.{}: when: others may call these tools, too; deny them by a rule with a glob"


@pytest.fixture
def known_people() -> InMemoryState:
    state = InMemoryState()
    state.users[USER] = a_user()
    return state


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("pattern", [ECHO, "mcp__files__*"])
async def test_a_rule_that_allows_some_people_what_all_may_do_is_warned_about(
    unrestricted_toolsets: MockType, known_people: InMemoryState, pattern: str
) -> None:
    for saved in (an_agent_with((pattern, FOR_LEADS)), an_organization_with((pattern, FOR_LEADS))):
        assert await review(unrestricted_toolsets, saved, state=known_people) == (OPEN.format(pattern),)


@pytest.mark.requirement("P6")
@pytest.mark.parametrize(
    ("other", "rule"),
    [
        ("mcp__files__*", ToolRule(decision=Verdict.DENY)),
        ("*", ASK),
    ],
)
async def test_a_rule_that_allows_some_people_what_others_are_denied_is_not_warned_about(
    unrestricted_toolsets: MockType, known_people: InMemoryState, other: str, rule: ToolRule
) -> None:
    saved = an_agent_with((other, rule), (ECHO, FOR_LEADS))
    assert not [said for said in await review(unrestricted_toolsets, saved, state=known_people) if "others" in said]


@pytest.mark.requirement("P6")
async def test_a_rule_of_the_organization_may_deny_the_others(
    unrestricted_toolsets: MockType, known_people: InMemoryState
) -> None:
    denying = ToolRule(decision=Verdict.DENY, overridable=True)
    known_people.organizations[ORG] = an_organization_with(("mcp__*", denying))
    saved = an_agent_with((ECHO, FOR_LEADS))
    assert await review(unrestricted_toolsets, saved, state=known_people) == ()


@pytest.mark.requirement("P6")
async def test_a_more_exact_rule_decides_for_the_others_and_conditions_do_not(
    unrestricted_toolsets: MockType, known_people: InMemoryState
) -> None:
    exact = an_agent_with(("mcp__files__*", FOR_LEADS), (ECHO, ToolRule(decision=Verdict.ALLOW)))
    assert OPEN.format("mcp__files__*") not in await review(unrestricted_toolsets, exact, state=known_people)
    denied_to_one = ToolRule(decision=Verdict.DENY, when=Condition(people=(USER,)))
    conditional = an_agent_with(("mcp__files__*", denied_to_one), (ECHO, FOR_LEADS))
    assert OPEN.format(ECHO) in await review(unrestricted_toolsets, conditional, state=known_people)
