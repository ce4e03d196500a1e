"""Audit entries of runs and their tool calls. Their ids are derived, so a repeated step writes no
entry twice."""

from datetime import datetime

from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId, id_near
from domain.json_value import JsonObject, canonical_digest
from domain.policy.decision import Decision
from domain.runs.ledger import InputAnswer, ToolCall
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolOutcome

_ENDINGS = {
    RunStatus.COMPLETED: AuditAction.RUN_COMPLETED,
    RunStatus.INCOMPLETE: AuditAction.RUN_COMPLETED,
    RunStatus.FAILED: AuditAction.RUN_FAILED,
    RunStatus.HALTED: AuditAction.RUN_FAILED,
    RunStatus.CANCELLED: AuditAction.RUN_CANCELLED,
}
OUTCOME_ACTIONS = {
    ToolOutcome.SUCCEEDED: AuditAction.TOOL_EXECUTED,
    ToolOutcome.FAILED: AuditAction.TOOL_FAILED,
    ToolOutcome.UNKNOWN: AuditAction.TOOL_FAILED,
    ToolOutcome.BLOCKED: AuditAction.TOOL_BLOCKED,
}
"""Audit actions by the outcome of a call."""


def run_started_audit(run: Run, *, at: datetime) -> AuditEvent:
    """The run was claimed for the first time."""
    return _run_audit(run, AuditAction.RUN_STARTED, actor=run.requested_by or "system", at=at, details={})


def run_ended_audit(run: Run, *, at: datetime, actor: str = "system") -> AuditEvent:
    """The run has ended; `details` have its status and the reason."""
    details: JsonObject = {"status": run.status.value}
    if run.incomplete_reason is not None:
        details["reason"] = run.incomplete_reason.value
    if run.error is not None:
        details["error"] = run.error.code
    return _run_audit(run, _ENDINGS[run.status], actor=actor, at=at, details=details)


def session_halted_audit(run: Run, details: JsonObject, *, at: datetime) -> AuditEvent:
    """Policy or a canary token ended the run."""
    return _run_audit(run, AuditAction.SESSION_HALTED, actor="system", at=at, details=details)


def tool_call_audit(
    run: Run, call: ToolCall, *, actor: str | None = None, decision: Decision | None = None
) -> AuditEvent:
    """The call was settled by `actor`, otherwise by the run on behalf of its creator. `decision` is
    the policy decision, if policy was evaluated."""
    result, at = call.outcome
    details: JsonObject = {} if result.error_code is None else {"error": result.error_code}
    if decision is not None:
        details["decision"] = decision.as_json()
    return AuditEvent(
        id=AuditEventId(id_near("aud", run.id, call.id)),
        organization_id=run.organization_id,
        action=OUTCOME_ACTIONS[result.outcome],
        actor=actor or run.requested_by or "system",
        resource=call.id,
        at=at,
        run_id=run.id,
        tool=call.name,
        server_id=call.server_id,
        duration_ms=call.duration_ms,
        arguments_digest=canonical_digest(call.params),
        details=details,
    )


def answer_audit(run: Run, call: ToolCall, answer: InputAnswer, *, actor: str, at: datetime) -> tuple[AuditEvent, ...]:
    """A person answered, declined or dismissed a question of the call's server. What they wrote is
    not in the entry."""
    if answer.action is None:
        return ()
    return (
        AuditEvent(
            id=AuditEventId(id_near("aud", run.id, call.id, "answer", answer.request_id)),
            organization_id=run.organization_id,
            action=AuditAction.RUN_QUESTION_ANSWERED,
            actor=actor,
            resource=call.id,
            at=at,
            run_id=run.id,
            tool=call.name,
            server_id=call.server_id,
            details={"request_id": answer.request_id, "answer": answer.action.value},
        ),
    )


def _run_audit(run: Run, action: AuditAction, *, actor: str, at: datetime, details: JsonObject) -> AuditEvent:
    return AuditEvent(
        id=AuditEventId(id_near("aud", run.id, action.value)),
        organization_id=run.organization_id,
        action=action,
        actor=actor,
        resource=run.id,
        at=at,
        run_id=run.id,
        details={"agent_id": run.agent_id, "thread_id": run.thread_id, **details},
    )
