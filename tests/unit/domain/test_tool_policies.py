"""The decision about a tool's calls: each clause of C2, and what no policy can ever do."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.policy.approvers import Approvers
from domain.policy.decision import Decision, DecisionReason, decide
from domain.policy.layers import PolicyLayer, PolicyLayers, Source
from domain.policy.rule_json import policies_from_json, policies_to_json, rule_from_json, rule_to_json
from domain.policy.rules import OnBlock, OnUnknownOutcome, ToolPolicies, ToolRule, Verdict

TOOL = "mcp__git__log"
ALLOW = ToolRule(decision=Verdict.ALLOW)
ASK = ToolRule(decision=Verdict.REQUIRE_APPROVAL)
DENY = ToolRule(decision=Verdict.DENY)


def either(pattern: str, rule: ToolRule, *more: tuple[str, ToolRule]) -> ToolPolicies:
    return ToolPolicies(rules=((pattern, rule), *more))


def decided(
    organization: ToolRule | ToolPolicies | None = None,
    agent: ToolRule | ToolPolicies | None = None,
    *,
    arguments: JsonObject | None = None,
    violations: tuple[str, ...] = (),
    calls_so_far: int = 0,
) -> Decision:
    def of(said: ToolRule | ToolPolicies | None) -> ToolPolicies:
        return said if isinstance(said, ToolPolicies) else ToolPolicies(rules=() if said is None else ((TOOL, said),))

    layers = PolicyLayers(organization=of(organization), agent=of(agent))
    return decide(layers, TOOL, arguments or {}, violations=violations, calls_so_far=calls_so_far)


def test_a_tool_nobody_says_anything_of_is_allowed_by_default() -> None:
    decision = decided()
    assert (decision.verdict, decision.reason) == (Verdict.ALLOW, DecisionReason.ALLOWED)
    assert decision.source == Source(layer=PolicyLayer.BUILT_IN)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("organization", "agent", "verdict", "layer"),
    [
        (DENY, ALLOW, Verdict.DENY, PolicyLayer.ORGANIZATION),
        (ASK, ALLOW, Verdict.REQUIRE_APPROVAL, PolicyLayer.ORGANIZATION),
        (ASK, DENY, Verdict.DENY, PolicyLayer.AGENT),
        (ALLOW, ASK, Verdict.REQUIRE_APPROVAL, PolicyLayer.AGENT),
        (ALLOW, ALLOW, Verdict.ALLOW, PolicyLayer.ORGANIZATION),
        (None, DENY, Verdict.DENY, PolicyLayer.AGENT),
        (DENY, None, Verdict.DENY, PolicyLayer.ORGANIZATION),
        (ToolRule(decision=Verdict.DENY, overridable=True), ALLOW, Verdict.ALLOW, PolicyLayer.AGENT),
        (ToolRule(decision=Verdict.DENY, overridable=True), ASK, Verdict.REQUIRE_APPROVAL, PolicyLayer.AGENT),
        (ToolRule(decision=Verdict.DENY, overridable=True), None, Verdict.DENY, PolicyLayer.ORGANIZATION),
        (
            ToolRule(decision=Verdict.DENY, overridable=True),
            ToolRule(max_calls=1),
            Verdict.DENY,
            PolicyLayer.ORGANIZATION,
        ),
    ],
)
def test_layers_only_tighten_unless_the_organizations_rule_may_be_overridden(
    organization: ToolRule | None, agent: ToolRule | None, verdict: Verdict, layer: PolicyLayer
) -> None:
    decision = decided(organization, agent)
    assert (decision.verdict, decision.source) == (verdict, Source(layer=layer, pattern=TOOL))


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        (either("mcp__*", DENY, (TOOL, ALLOW)), Verdict.ALLOW),
        (either("mcp__*", ALLOW, ("mcp__git__*", DENY)), Verdict.DENY),
        (either("mcp__*", DENY, ("mcp__git__*", ALLOW)), Verdict.ALLOW),
        (either("mcp__git__l*", ALLOW, ("mcp__git__l?g", ASK)), Verdict.REQUIRE_APPROVAL),
        (either("mcp__git__[l]og", DENY, ("mcp__git__*", ALLOW)), Verdict.DENY),
        (either("MCP__GIT__*", DENY), Verdict.ALLOW),
        (either("*__log", DENY), Verdict.DENY),
        (either("mcp__git__lo", DENY), Verdict.ALLOW),
        (either("mcp__*", ASK, (TOOL, ToolRule(max_results=3))), Verdict.ALLOW),
    ],
)
def test_in_a_layer_a_name_beats_a_glob_and_a_longer_prefix_a_shorter_and_ties_take_the_stricter(
    rules: ToolPolicies, verdict: Verdict
) -> None:
    assert decided(None, rules).verdict is verdict


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("organization", "agent", "parameter", "blocked"),
    [
        (ToolRule(denied_params=("force",)), None, "force", True),
        (ToolRule(denied_params=("force",)), None, "limit", False),
        (None, ToolRule(allowed_params=("limit",)), "force", True),
        (None, ToolRule(allowed_params=("limit",)), "limit", False),
        (None, ToolRule(allowed_params=()), "limit", True),
        (None, ToolRule(denied_params=()), "limit", False),
        (ToolRule(denied_params=("limit",)), ToolRule(allowed_params=("limit",)), "limit", True),
        (ToolRule(allowed_params=("limit", "path")), ToolRule(allowed_params=("path", "force")), "limit", True),
        (ToolRule(allowed_params=("limit", "path")), ToolRule(allowed_params=("path", "force")), "force", True),
        (ToolRule(allowed_params=("limit", "path")), ToolRule(allowed_params=("path", "force")), "path", False),
        (ToolRule(denied_params=("limit",)), ToolRule(denied_params=("path",)), "limit", True),
        (ToolRule(denied_params=("limit",), overridable=True), ToolRule(denied_params=("path",)), "limit", False),
    ],
)
def test_parameters_are_allowed_by_all_layers_and_denied_by_any(
    organization: ToolRule | None, agent: ToolRule | None, parameter: str, blocked: bool
) -> None:
    decision = decided(organization, agent, arguments={parameter: 1})
    assert decision.is_blocked is blocked
    if blocked:
        assert decision.reason is DecisionReason.PARAMETER_DENIED
        assert repr(parameter) in decision.sentence


@pytest.mark.requirement("C2")
def test_a_call_without_arguments_passes_where_no_parameter_is_allowed() -> None:
    assert decided(None, ToolRule(allowed_params=())).verdict is Verdict.ALLOW


@pytest.mark.requirement("C2")
def test_schemas_of_all_layers_hold_and_a_violation_blocks_with_its_sentence() -> None:
    one: JsonObject = {"maxProperties": 1}
    other: JsonObject = {"maxProperties": 2}
    decision = decided(ToolRule(arguments_schema=one), ToolRule(arguments_schema=other), violations=("too many",))
    assert [constraint.schema for constraint in decision.policy.constraints] == [one, other]
    assert (decision.reason, "too many" in decision.sentence) == (DecisionReason.ARGUMENTS_DENIED, True)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(("calls", "blocked"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_smallest_number_of_calls_applies(calls: int, blocked: bool) -> None:
    decision = decided(ToolRule(max_calls=2), ToolRule(max_calls=5), calls_so_far=calls)
    assert decision.is_blocked is blocked
    assert decision.policy.source_of("max_calls").layer is PolicyLayer.ORGANIZATION


def test_the_smallest_of_times_sizes_and_terms_applies() -> None:
    loose = ToolRule(max_results=9, max_result_bytes=9, timeout_s=9, approval_ttl_s=9, idempotent=True)
    tight = ToolRule(max_results=2, max_result_bytes=3, timeout_s=4, approval_ttl_s=5, allow_self_approval=False)
    for one, other in itertools.permutations((loose, tight)):
        policy = decided(one, other).policy
        assert (policy.max_results, policy.max_result_bytes, policy.timeout_s) == (2, 3, 4)
        assert (policy.approval.ttl_s, policy.approval.allow_self, policy.idempotent) == (5, False, True)
    assert decided(ToolRule(idempotent=False), ToolRule(idempotent=True)).policy.idempotent is False


def test_a_halt_asked_for_by_any_layer_is_kept_and_concerns_blocked_calls_only() -> None:
    halting = ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT)
    assert decided(halting, ToolRule(on_block=OnBlock.INFORM)).halts
    assert not decided(None, ToolRule(on_block=OnBlock.HALT)).halts
    assert decided(None, ToolRule(on_block=OnBlock.HALT, denied_params=("x",)), arguments={"x": 1}).halts


def test_a_person_is_asked_about_unknown_outcomes_if_any_layer_wants_it_unless_that_may_be_overridden() -> None:
    asks, tells = (ToolRule(on_unknown_outcome=what) for what in reversed(OnUnknownOutcome))
    assert asks.on_unknown_outcome is OnUnknownOutcome.REQUIRE_APPROVAL
    assert decided(None, None).policy.on_unknown_outcome is OnUnknownOutcome.INFORM
    for one, other in ((asks, tells), (tells, asks), (asks, None), (None, asks)):
        assert decided(one, other).policy.on_unknown_outcome is OnUnknownOutcome.REQUIRE_APPROVAL
    mild = decided(replace(asks, overridable=True), tells).policy
    assert (mild.on_unknown_outcome, mild.source_of("on_unknown_outcome").layer) == (
        OnUnknownOutcome.INFORM,
        PolicyLayer.AGENT,
    )


def test_nobody_is_asked_about_a_call_that_may_not_be_made() -> None:
    asking = ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("force",))
    assert decided(None, asking, arguments={"force": True}).verdict is Verdict.DENY
    assert decided(None, asking).verdict is Verdict.REQUIRE_APPROVAL


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("organization", "agent", "run", "hidden_by"),
    [
        (None, None, None, None),
        (("mcp__git__*",), None, None, None),
        (("mcp__files__*",), None, None, PolicyLayer.ORGANIZATION),
        (("mcp__files__*",), (TOOL,), None, PolicyLayer.ORGANIZATION),
        (None, (), None, PolicyLayer.AGENT),
        ((), None, None, PolicyLayer.ORGANIZATION),
        (None, ("mcp__*",), ("mcp__files__*",), PolicyLayer.RUN),
        (None, ("mcp__files__*",), (TOOL,), PolicyLayer.AGENT),
        (None, None, (TOOL,), None),
    ],
)
def test_a_tool_is_hidden_unless_every_allowlist_there_is_has_it(
    organization: tuple[str, ...] | None,
    agent: tuple[str, ...] | None,
    run: tuple[str, ...] | None,
    hidden_by: PolicyLayer | None,
) -> None:
    layers = PolicyLayers(organization_allowlist=organization, agent_allowlist=agent, run_allowlist=run)
    decision = decide(layers, TOOL, {})
    assert layers.resolve(TOOL).hidden_by is hidden_by
    assert decision.is_hidden is (hidden_by is not None)
    assert decision.verdict is (Verdict.ALLOW if hidden_by is None else Verdict.DENY)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"allowed_params": ("a", "b"), "denied_params": ("b",)}, "denied_params"),
        ({"allowed_params": ("a", "a")}, "allowed_params"),
        ({"denied_params": ("",)}, "denied_params.0"),
        ({"denied_params": tuple(map(str, range(201)))}, "denied_params"),
        ({"max_calls": 0}, "max_calls"),
        ({"max_results": -1}, "max_results"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"max_result_bytes": 2**40}, "max_result_bytes"),
        ({"approval_ttl_s": 0}, "approval_ttl_s"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused_with_its_place(wrong: dict[str, object], path: str) -> None:
    with pytest.raises(ServiceError) as refused:
        ToolRule(**wrong)  # type: ignore[arg-type]  # fields by name
    assert [violation.path for violation in refused.value.violations] == [path]


@pytest.mark.parametrize("pattern", ["", "a b", "mcp/git", "x" * 129, "mcp__git__*\n"])
def test_a_pattern_that_can_fit_no_tool_is_refused(pattern: str) -> None:
    with pytest.raises(ServiceError):
        either(pattern, DENY)


names = st.sampled_from([TOOL, "mcp__git__push", "mcp__files__read", "code_execution"])
patterns = st.sampled_from([TOOL, "mcp__*", "mcp__git__*", "*", "mcp__git__l*", "mcp__git__?og", "*__log", "code_*"])
params = st.lists(st.sampled_from("abcd"), unique=True, max_size=3).map(tuple)


never = st.just(False)
small: JsonObject = {"maxProperties": 1}


@st.composite
def rules(draw: st.DrawFn, *, overridable: st.SearchStrategy[bool] = never) -> ToolRule:
    allowed = draw(st.none() | params)
    denied = draw(st.none() | params)
    if allowed is not None and denied is not None:
        denied = tuple(name for name in denied if name not in allowed)
    return ToolRule(
        decision=draw(st.none() | st.sampled_from(Verdict)),
        on_block=draw(st.none() | st.sampled_from(OnBlock)),
        allowed_params=allowed,
        denied_params=denied,
        arguments_schema=draw(st.none() | st.just(small)),
        max_calls=draw(st.none() | st.integers(1, 3)),
        max_results=draw(st.none() | st.integers(1, 3)),
        idempotent=draw(st.none() | st.booleans()),
        on_unknown_outcome=draw(st.none() | st.sampled_from(OnUnknownOutcome)),
        overridable=draw(overridable),
    )


def layer_of(one_rule: st.SearchStrategy[ToolRule]) -> st.SearchStrategy[ToolPolicies]:
    entries = st.dictionaries(patterns, one_rule, max_size=5)
    return entries.map(lambda found: ToolPolicies(rules=tuple(found.items())))


calls = st.tuples(names, st.dictionaries(st.sampled_from("abcd"), st.just(1), max_size=3), st.integers(0, 4))


@pytest.mark.requirement("C2")
@given(organization=layer_of(rules()), agent=layer_of(rules()), call=calls)
def test_no_call_is_decided_milder_than_any_layer_alone_decides_it(
    organization: ToolPolicies, agent: ToolPolicies, call: tuple[str, JsonObject, int]
) -> None:
    name, arguments, so_far = call
    both = decide(PolicyLayers(organization=organization, agent=agent), name, arguments, calls_so_far=so_far)
    for alone in (PolicyLayers(organization=organization), PolicyLayers(agent=agent)):
        single = decide(alone, name, arguments, calls_so_far=so_far)
        assert both.verdict.strictness >= single.verdict.strictness
        assert both.policy.on_block is OnBlock.HALT or single.policy.on_block is OnBlock.INFORM
        assert single.policy.on_unknown_outcome in (both.policy.on_unknown_outcome, OnUnknownOutcome.INFORM)
        assert {c.schema["maxProperties"] for c in single.policy.constraints} <= {
            c.schema["maxProperties"] for c in both.policy.constraints
        }
        if single.policy.max_results is not None:
            assert both.policy.max_results is not None
            assert both.policy.max_results <= single.policy.max_results


@given(
    organization=layer_of(rules(overridable=st.booleans())),
    allowlist=st.none() | st.lists(patterns, max_size=3).map(tuple),
    agent=layer_of(rules()),
    call=calls,
    randomness=st.randoms(),
)
def test_the_order_in_which_rules_were_written_changes_nothing(
    organization: ToolPolicies,
    allowlist: tuple[str, ...] | None,
    agent: ToolPolicies,
    call: tuple[str, JsonObject, int],
    randomness: random.Random,
) -> None:
    name, arguments, so_far = call

    def shuffled(written: ToolPolicies) -> ToolPolicies:
        entries = list(written.rules)
        randomness.shuffle(entries)
        return ToolPolicies(rules=tuple(entries))

    def of(one: ToolPolicies, other: ToolPolicies) -> Decision:
        layers = PolicyLayers(organization=one, agent=other, organization_allowlist=allowlist)
        return decide(layers, name, arguments, calls_so_far=so_far)

    assert of(organization, agent) == of(shuffled(organization), shuffled(agent))


@given(written=layer_of(rules(overridable=st.booleans())))
def test_policies_survive_being_stored(written: ToolPolicies) -> None:
    assert policies_from_json(policies_to_json(written)) == written


@pytest.mark.requirement("P2")
def test_approvers_of_all_layers_apply_together_and_an_overridable_rule_is_replaced() -> None:
    leads, finance = Approvers(groups=("Leads",)), Approvers(people=("usr_ann",))
    asks = Verdict.REQUIRE_APPROVAL
    agent = ToolPolicies(rules=(("mail_*", ToolRule(approvers=finance)),))

    def approvers(*, overridable: bool) -> tuple[Approvers, ...]:
        rule = ToolRule(decision=asks, approvers=leads, overridable=overridable)
        layers = PolicyLayers(organization=ToolPolicies(rules=(("*", rule),)), agent=agent)
        assert layers.resolve("other").approval.approvers == (leads,)
        return layers.resolve("mail_send").approval.approvers

    assert approvers(overridable=False) == (leads, finance)
    assert approvers(overridable=True) == (finance,)


@pytest.mark.requirement("P2")
def test_approvers_are_stored_and_read_as_they_were_stated() -> None:
    rule = ToolRule(approvers=Approvers(people=("usr_ann", "key_deploy"), groups=("Leads",)))
    assert rule_to_json(rule) == {"approvers": {"people": ["usr_ann", "key_deploy"], "groups": ["Leads"]}}
    assert rule_from_json(rule_to_json(rule)) == rule
    assert rule_to_json(ToolRule(approvers=Approvers(groups=("Leads",)))) == {"approvers": {"groups": ["Leads"]}}


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("people", "groups", "path"),
    [
        ((), (), "approvers"),
        (("ann@example.com",), (), "approvers.people.0"),
        (("usr_ann",), ("",), "approvers.groups.0"),
        ((), ("Le\nads",), "approvers.groups.0"),
        ((), tuple(f"group {number}" for number in range(101)), "approvers"),
    ],
)
def test_approvers_name_ids_and_groups_and_not_too_many(
    people: tuple[str, ...], groups: tuple[str, ...], path: str
) -> None:
    with pytest.raises(ServiceError) as raised:
        Approvers(people=people, groups=groups)
    assert (raised.value.code, [each.path for each in raised.value.violations]) == ("tool_policy_invalid", [path])
