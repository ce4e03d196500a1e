"""Checks what people decide about calls of a waiting run, before anything of it is stored."""

from dataclasses import dataclass, replace
from datetime import datetime

from application.agents.ports import AgentStore
from application.approvals.ports import ApprovalStore
from application.mcp.ports import ConnectionScope
from application.policy.canary_guard import CanaryGuard
from application.tools.check_tool_call import CheckToolCall
from application.tools.result_text import FAILURE_LIMIT_BYTES, cleaned, cut
from application.tools.tool_catalog import ToolCatalog
from application.tools.toolset import Toolset
from domain.agents.agent import Agent
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, approval_digest
from domain.approvals.refusals import approval_decided, approval_expired, refuse_unless_pending, self_approval_forbidden
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.ids import ApprovalId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.run import Run, RunStatus
from domain.threads.message import ToolUse

SCHEMA_FAULTS = ("tool_arguments_invalid", "tool_arguments_malformed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """A person's word on a pending call. `arguments` take the place of the model's; `approval_id` says which approval is
    meant, where a call may have been asked for more than once."""

    tool_call_id: ToolCallId
    approve: bool
    arguments: JsonObject | None = None
    reason: str | None = None
    approval_id: ApprovalId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDecisions:
    """What is to be stored. With a `stale` approval nothing is decided: the outcomes only make all approvals stale that
    were asked for under another version of the agent."""

    outcomes: tuple[ApprovalOutcome, ...] = ()
    stale: ApprovalId | None = None


class CheckDecisions:
    """Rules: a pending approval only, in time, and once; whoever started the run does not approve its calls where policy wants
    somebody else; arguments are edited within the tool's schema and within policy, whose wish for an approval this one
    fulfils, and hold no canary token; a call that may have been sent is sent again as it was, or not at all; an approval for another version of the agent is stale."""

    def __init__(
        self, *, approvals: ApprovalStore, agents: AgentStore, catalog: ToolCatalog, check: CheckToolCall
    ) -> None:
        self._approvals = approvals
        self._agents = agents
        self._catalog = catalog
        self._check = check

    async def execute(
        self, principal: Principal, run: Run, decisions: tuple[CallDecision, ...], *, at: datetime
    ) -> CheckedDecisions:
        """Raises CONFLICT (`approval_decided`, `approval_expired`, `approval_stale`, `approval_cancelled`,
        `run_not_waiting`), FORBIDDEN `self_approval_forbidden`, INVALID (`tool_call_not_pending`, `arguments_invalid`,
        `arguments_denied`)."""
        if not decisions:
            return CheckedDecisions()
        stored = await self._approvals.of_run(run.organization_id, run.id)
        by_call = {approval.tool_call_id: approval for approval in stored}
        by_call |= {approval.tool_call_id: approval for approval in stored if approval.state is ApprovalState.PENDING}
        chosen = [(decision, _pending(run, by_call, decision, index)) for index, decision in enumerate(decisions)]
        for decision, approval in chosen:
            if at >= approval.expires_at:
                raise approval_expired(approval.id)
            if decision.approve and not approval.allow_self_approval and approval.is_own_run_of(principal.key_id):
                raise self_approval_forbidden(approval.id)
        agent = await self._agents.get(run.organization_id, run.agent_id)
        stale = [approval for approval in stored if _is_stale(approval, agent)]
        if any(approval in stale for _, approval in chosen):
            return CheckedDecisions(
                outcomes=tuple(_outcome(approval, ApprovalState.STALE, by="system", at=at) for approval in stale),
                stale=next(approval.id for _, approval in chosen if approval in stale),
            )
        guard = CanaryGuard({}) if agent is None else CanaryGuard.of(agent, run.id)
        edited = await self._edited(run, agent, decisions, guard)
        return CheckedDecisions(
            outcomes=tuple(
                replace(
                    _outcome(
                        approval,
                        ApprovalState.APPROVED if decision.approve else ApprovalState.DENIED,
                        by=principal.key_id,
                        at=at,
                    ),
                    reason=decider_words(decision.reason, guard),
                    edited_arguments=edited.get(decision.tool_call_id),
                )
                for decision, approval in chosen
            )
        )

    async def _edited(
        self, run: Run, agent: Agent | None, decisions: tuple[CallDecision, ...], guard: CanaryGuard
    ) -> dict[ToolCallId, JsonObject]:
        if all(decision.arguments is None for decision in decisions):
            return {}
        for index, decision in enumerate(decisions):
            if decision.arguments is not None and not decision.approve:
                path = f"approvals.{index}.arguments"
                raise invalid(
                    "arguments_invalid",
                    "The arguments of a denied call cannot be changed.",
                    Violation(path=path, message="belong to an approved call"),
                )
        again = {use.id for use in run.pending if use.approval is not None and use.approval.outcome_unknown}
        for index, decision in enumerate(decisions):
            if decision.arguments is not None and decision.tool_call_id in again:
                raise invalid(
                    "arguments_invalid",
                    "The arguments of a call that may have been sent already cannot be changed.",
                    Violation(path=f"approvals.{index}.arguments", message="belong to a call that was not sent yet"),
                )
        if agent is None:
            raise conflict("agent_deleted", "The run's agent was deleted; arguments cannot be changed any more.")
        scope = ConnectionScope(organization_id=run.organization_id, thread_id=run.thread_id, run_id=run.id)
        toolset = await self._catalog.toolset(agent.config, scope, run_allowlist=run.tool_allowlist, wired=run.wired)
        names = {use.id: use.name for use in run.pending}
        return {
            decision.tool_call_id: self._checked(
                toolset,
                ToolUse(id=decision.tool_call_id, name=names[decision.tool_call_id], params=decision.arguments),
                guard,
                path=f"approvals.{index}.arguments",
            )
            for index, decision in enumerate(decisions)
            if decision.arguments is not None
        }

    def _checked(self, toolset: Toolset, use: ToolUse, guard: CanaryGuard, *, path: str) -> JsonObject:
        """The arguments as they would be sent."""
        canary_id = guard.arguments(use.params)
        if canary_id is not None:
            holds = Violation(path=path, message=f"holds the canary token {canary_id}")
            raise invalid("arguments_denied", "The arguments hold a canary token; nothing was decided.", holds)
        checked = self._check.check(use, toolset)
        refusal = checked.answer
        if refusal is None:
            return checked.params
        code = "arguments_invalid" if refusal.error_code in SCHEMA_FAULTS else "arguments_denied"
        raise invalid(
            code,
            "The call may not be made with these arguments; nothing was decided.",
            Violation(path=path, message=refusal.text),
        )


def _pending(run: Run, by_call: dict[ToolCallId, Approval], decision: CallDecision, index: int) -> Approval:
    approval = by_call.get(decision.tool_call_id)
    if approval is None:
        if run.status is not RunStatus.REQUIRES_ACTION:
            raise conflict("run_not_waiting", f"Run {run.id} is {run.status}, not requires_action.", run_id=run.id)
        raise invalid(
            "tool_call_not_pending",
            f"Run {run.id} does not wait for an approval of all of these calls.",
            Violation(path=f"approvals.{index}.tool_call_id", message="does not wait for an approval"),
        )
    if decision.approval_id not in (None, approval.id):
        raise approval_decided(approval.id)
    refuse_unless_pending(approval)
    return approval


def _is_stale(approval: Approval, agent: Agent | None) -> bool:
    """Whether a pending approval is bound to something that is no longer so. A deleted agent counts at its last version."""
    if approval.state is not ApprovalState.PENDING or agent is None:
        return False
    return approval.digest != approval_digest(approval.tool, approval.arguments, agent.version)


def _outcome(approval: Approval, state: ApprovalState, *, by: str, at: datetime) -> ApprovalOutcome:
    return ApprovalOutcome(approval_id=approval.id, state=state, at=at, by=by)


def decider_words(reason: str | None, guard: CanaryGuard) -> str | None:
    """What the model and the audit are told of the decider's words."""
    return cut(guard.words(cleaned(reason).strip()), FAILURE_LIMIT_BYTES) or None if reason else None
