"""The policy of an agent that is called as a tool: never milder than its caller's, nor than its
own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonObject
from domain.policy.approvers import Approvers
from domain.policy.caller import CalledLayers, CallerRules, Restrictions, held_to
from domain.policy.decision import DecisionReason, decide
from domain.policy.layers import ApprovalTerms, PolicyLayer, PolicyLayers, Source, ToolPolicy
from domain.policy.rules import NO_POLICIES, OnBlock, ToolPolicies, ToolRule, Verdict
from tests.unit.domain.test_tool_policies import calls, layer_of, rules

TOOL = "mcp__fs__delete"
NAMED = st.none() | st.lists(st.sampled_from(["*", "mcp__*", TOOL]), max_size=2).map(tuple)

pytestmark = pytest.mark.requirement("C2", "S5")


def called(
    caller: ToolPolicies = NO_POLICIES,
    *,
    organization: ToolPolicies = NO_POLICIES,
    agent: ToolPolicies = NO_POLICIES,
    caller_allowlist: tuple[str, ...] | None = None,
    agent_allowlist: tuple[str, ...] | None = None,
) -> CalledLayers:
    restrictions: Restrictions = {
        "organization": organization,
        "agent": agent,
        "organization_allowlist": None,
        "agent_allowlist": agent_allowlist,
        "run_allowlist": None,
    }
    return CalledLayers(CallerRules(allowlist=caller_allowlist, policies=caller), restrictions)


def one(**rule: object) -> ToolPolicies:
    return ToolPolicies(rules=((TOOL, ToolRule(**rule)),))  # type: ignore[arg-type]  # fields by name


@given(
    organization=layer_of(rules(overridable=st.booleans())),
    agent=layer_of(rules()),
    caller=layer_of(rules()),
    allowlists=st.tuples(NAMED, NAMED),
    call=calls,
)
def test_no_call_of_a_called_agent_is_decided_milder_than_for_it_or_its_caller_alone(
    organization: ToolPolicies,
    agent: ToolPolicies,
    caller: ToolPolicies,
    allowlists: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
    call: tuple[str, JsonObject, int],
) -> None:
    name, arguments, so_far = call
    agent_allowlist, caller_allowlist = allowlists
    layers = called(
        caller,
        organization=organization,
        agent=agent,
        agent_allowlist=agent_allowlist,
        caller_allowlist=caller_allowlist,
    )
    both = decide(layers, name, arguments, calls_so_far=so_far)
    for alone in (
        PolicyLayers(organization=organization, agent=agent, agent_allowlist=agent_allowlist),
        PolicyLayers(organization=organization, agent=caller, agent_allowlist=caller_allowlist),
    ):
        single = decide(alone, name, arguments, calls_so_far=so_far)
        assert both.verdict.strictness >= single.verdict.strictness
        assert both.policy.on_block is OnBlock.HALT or single.policy.on_block is OnBlock.INFORM
        assert [c.schema for c in single.policy.constraints if c.schema not in _schemas(both.policy)] == []
        assert both.policy.approval.ttl_s <= single.policy.approval.ttl_s
        for limit in ("max_results", "max_calls", "max_result_bytes", "timeout_s"):
            least, own = getattr(both.policy, limit), getattr(single.policy, limit)
            assert own is None or (least is not None and least <= own)


def _schemas(policy: ToolPolicy) -> list[JsonObject]:
    return [constraint.schema for constraint in policy.constraints]


def test_a_denial_of_the_caller_names_the_caller_as_its_source() -> None:
    decision = decide(called(one(decision=Verdict.DENY), agent=one(decision=Verdict.ALLOW)), TOOL, {})
    assert (decision.verdict, decision.source) == (Verdict.DENY, Source(layer=PolicyLayer.CALLER, pattern=TOOL))
    assert decision.as_json()["layer"] == "caller"


def test_a_denial_that_an_organization_lets_agents_replace_holds_until_both_replace_it() -> None:
    organization = one(decision=Verdict.DENY, overridable=True)
    allow = one(decision=Verdict.ALLOW)
    verdicts = [
        decide(called(caller, organization=organization, agent=agent), TOOL, {}).verdict
        for caller, agent in ((allow, NO_POLICIES), (NO_POLICIES, allow), (allow, allow))
    ]
    assert verdicts == [Verdict.DENY, Verdict.DENY, Verdict.ALLOW]


def test_what_the_callers_allowlist_does_not_name_is_hidden() -> None:
    decision = decide(called(caller_allowlist=("agent__*",)), TOOL, {})
    assert (decision.reason, decision.source.layer) == (DecisionReason.HIDDEN, PolicyLayer.CALLER)


def test_a_caller_does_not_make_a_tool_repeatable() -> None:
    assert called(one(idempotent=True)).resolve(TOOL).idempotent is None
    assert called(one(idempotent=False), agent=one(idempotent=True)).resolve(TOOL).idempotent is False


def test_one_constraint_of_both_policies_is_applied_once() -> None:
    organization = one(arguments_schema={"maxProperties": 1})
    policy = called(one(arguments_schema={"maxProperties": 2}), organization=organization).resolve(TOOL)
    layers = [constraint.source.layer for constraint in policy.constraints]
    assert layers == [PolicyLayer.ORGANIZATION, PolicyLayer.CALLER]
    assert policy.sources["arguments_schema"] == tuple(constraint.source for constraint in policy.constraints)


def test_the_stricter_terms_of_an_approval_hold() -> None:
    strict = ToolPolicy(approval=ApprovalTerms(ttl_s=60, allow_self=False))
    assert held_to(ToolPolicy(), strict).approval == held_to(strict, ToolPolicy()).approval == strict.approval


@pytest.mark.requirement("P2")
def test_approvers_of_the_caller_apply_too() -> None:
    leads, finance = Approvers(groups=("Leads",)), Approvers(groups=("Finance",))
    own = ToolPolicy(approval=ApprovalTerms(approvers=(leads,)))
    assert held_to(own, ToolPolicy(approval=ApprovalTerms(approvers=(finance, leads)))).approval.approvers == (
        leads,
        finance,
    )
    assert held_to(own, ToolPolicy()).approval.approvers == (leads,)
    assert held_to(ToolPolicy(), own).approval.approvers == (leads,)
