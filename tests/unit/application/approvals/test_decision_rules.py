"""Deciding requires a role, edited arguments are checked like the model's, and no canary token is
stored with a decision."""

import pytest

from application.approvals.decision_rules import checked_arguments, decided_outcome, require_decider
from application.policy.canary_guard import CanaryGuard
from application.tools.check_tool_call import CheckToolCall
from application.tools.result_text import FAILURE_LIMIT_BYTES
from application.tools.toolset import Toolset
from domain.approvals.approval import ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.json_value import JsonObject
from domain.policy.rules import ToolRule, Verdict
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import after
from tests.refusals import refused
from tests.run_builders import ASKS, CANARY, DENIES, ECHO, a_run_approval, a_toolset
from tests.unit.application.actors import a_principal, roles_below

APPROVAL = a_run_approval()
GUARD = CanaryGuard({"vault": CANARY})


def checked(arguments: JsonObject, toolset: Toolset | None = None, tool: str = ECHO) -> JsonObject:
    check = CheckToolCall(schemas=JsonSchemaValidator())
    tools = toolset or a_toolset(rules=ASKS)
    return checked_arguments(arguments, tool, tools, GUARD, check, path="arguments", is_own=False)


def outcome(*, approve: bool = True, reason: str | None = None, edited: JsonObject | None = None) -> ApprovalOutcome:
    decision = CallDecision(tool_call_id=APPROVAL.tool_call_id, approve=approve, reason=reason)
    return decided_outcome(a_principal(Role.OPERATOR), APPROVAL, decision, GUARD, edited=edited, at=after(60))


@pytest.mark.requirement("C3", "C6")
@pytest.mark.parametrize("role", roles_below(Role.OPERATOR))
def test_a_role_below_operator_decides_nothing(role: Role) -> None:
    with refused("role_insufficient"):
        require_decider(a_principal(role))


@pytest.mark.requirement("C2", "C3")
def test_edited_arguments_of_a_tool_that_requires_an_approval_are_accepted() -> None:
    assert checked({"text": "edited"}) == {"text": "edited"}


@pytest.mark.requirement("C2", "C3", "C4")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"text": 7}, "arguments_invalid"),
        ({"text": "a", "loud": True}, "arguments_denied"),
        ({"text": f"say {CANARY}"}, "arguments_denied"),
    ],
    ids=["schema", "policy", "canary token"],
)
def test_arguments_that_may_not_be_sent_are_refused_by_their_path(arguments: JsonObject, code: str) -> None:
    rules = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("loud",))}

    with pytest.raises(ServiceError) as raised:
        checked(arguments, a_toolset(rules=rules))

    assert (raised.value.code, raised.value.kind) == (code, ErrorKind.INVALID)
    assert [violation.path for violation in raised.value.violations] == ["arguments"]


@pytest.mark.requirement("C2", "C3")
def test_arguments_of_a_tool_that_policy_denies_by_now_are_refused() -> None:
    with refused("arguments_denied"):
        checked({"text": "edited"}, a_toolset(rules=DENIES))


@pytest.mark.requirement("C3")
def test_arguments_of_a_tool_that_is_gone_are_refused() -> None:
    with refused("arguments_denied"):
        checked({"text": "edited"}, tool="mcp__files__gone")


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("approve", "state"), [(True, ApprovalState.APPROVED), (False, ApprovalState.DENIED)])
def test_the_outcome_has_the_decision_the_key_and_the_edited_arguments(approve: bool, state: ApprovalState) -> None:
    assert outcome(approve=approve, reason="because", edited={"text": "edited"}) == ApprovalOutcome(
        approval_id=APPROVAL.id,
        state=state,
        at=after(60),
        by="key_operator",
        reason="because",
        edited_arguments={"text": "edited"},
    )


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("approve", [True, False])
def test_a_canary_token_in_a_reason_is_replaced_by_its_mark(approve: bool) -> None:
    assert outcome(approve=approve, reason=f"It said {CANARY}.").reason == "It said [canary:vault]."


@pytest.mark.parametrize("reason", [None, "", "  \n"])
def test_a_blank_reason_is_none(reason: str | None) -> None:
    assert outcome(reason=reason).reason is None


def test_a_long_reason_is_cut_and_has_no_control_characters() -> None:
    reason = outcome(reason="\x1b[2J" + "a" * 2 * FAILURE_LIMIT_BYTES).reason

    assert reason is not None
    assert "\x1b" not in reason
    assert len(reason) < 2 * FAILURE_LIMIT_BYTES
