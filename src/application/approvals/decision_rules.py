"""Rules of decisions that need more than the approval: role, edited arguments, accounts, canary
tokens.

Shared by calls of runs and of gateway sessions; `domain/approvals/decision.py` has the other rules.
"""

from datetime import datetime

from application.policy.canary_guard import CanaryGuard
from application.tools.check_tool_call import CheckToolCall
from application.tools.result_text import FAILURE_LIMIT_BYTES, cleaned, cut
from application.tools.toolset import Toolset
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.decision import CallDecision
from domain.approvals.refusals import account_not_yours
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject

_SCHEMA_FAULTS = ("tool_arguments_invalid", "tool_arguments_malformed")


def require_decider(principal: Principal) -> None:
    """Decisions require the role `operator`, and are not taken in the name of another person.
    Raises FORBIDDEN."""
    principal.require(Permission.APPROVALS_DECIDE)
    principal.require_self()


def role_lacking(principal: Principal) -> ServiceError | None:
    """The error of a principal who decides nothing."""
    try:
        require_decider(principal)
    except ServiceError as error:
        return error
    return None


def decided_outcome(
    principal: Principal,
    approval: Approval,
    decision: CallDecision,
    guard: CanaryGuard,
    *,
    edited: JsonObject | None,
    at: datetime,
) -> ApprovalOutcome:
    """The decision as stored. A canary token in its reason is replaced by its mark."""
    reason = decision.reason
    return ApprovalOutcome(
        approval_id=approval.id,
        state=ApprovalState.APPROVED if decision.approve else ApprovalState.DENIED,
        at=at,
        by=principal.key_id,
        reason=cut(guard.words(cleaned(reason).strip()), FAILURE_LIMIT_BYTES) or None if reason else None,
        edited_arguments=edited,
    )


def checked_arguments(
    arguments: JsonObject,
    tool: str,
    toolset: Toolset,
    guard: CanaryGuard,
    check: CheckToolCall,
    *,
    path: str,
    is_own: bool,
) -> JsonObject:
    """Edited arguments as sent. They contain no canary token, fit the tool's schema, and policy
    allows them; the decision fulfils a required approval. `is_own`: the caller is the person who
    acts; others do not edit calls that use that person's account. Raises INVALID
    `arguments_invalid`, `arguments_denied`, with their `path` in the request, FORBIDDEN
    `account_not_yours`."""
    canary_id = guard.arguments(arguments)
    if canary_id is not None:
        holds = Violation(path=path, message=f"holds the canary token {canary_id}")
        raise invalid("arguments_denied", "The arguments hold a canary token; no decision was taken.", holds)
    checked = check.recheck(tool, arguments, toolset)
    refusal = checked.answer
    if refusal is None:
        if not is_own and checked.tool is not None and checked.tool.uses_own_accounts:
            raise account_not_yours()
        return checked.params
    code = "arguments_invalid" if refusal.error_code in _SCHEMA_FAULTS else "arguments_denied"
    refused = Violation(path=path, message=refusal.text)
    raise invalid(code, "The call is not allowed with these arguments; no decision was taken.", refused)
