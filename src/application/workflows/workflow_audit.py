"""Audit entries of workflow runs: their ends, and the calls of tools that are steps."""

from dataclasses import dataclass
from datetime import datetime

from application.system.ports import IdSource
from application.workflows.node_execution import NodeContext
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId, ToolCallId, derived_id
from domain.json_value import JsonObject, canonical_digest
from domain.policy.decision import Decision
from domain.runs.audit_trail import OUTCOME_ACTIONS
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from domain.workflows.run import WorkflowRun, WorkflowRunStatus

_ACTIONS = {
    WorkflowRunStatus.COMPLETED: AuditAction.WORKFLOW_RUN_COMPLETED,
    WorkflowRunStatus.FAILED: AuditAction.WORKFLOW_RUN_FAILED,
    WorkflowRunStatus.CANCELLED: AuditAction.WORKFLOW_RUN_CANCELLED,
}


def ended_entry(run: WorkflowRun, *, ids: IdSource, at: datetime) -> AuditEvent:
    """The audit entry for the end of the run. Its actor is the one who requested cancellation,
    if any."""
    details: JsonObject = {"workflow_id": run.workflow_id, "version": run.workflow_version}
    if run.error is not None:
        details |= {"code": run.error.code, "node_id": run.failed_node}
    return AuditEvent(
        id=AuditEventId(ids.new("aud")),
        organization_id=run.organization_id,
        action=_ACTIONS[run.status],
        actor=run.cancel_requested_by or run.requested_by,
        resource=run.id,
        at=at,
        details=details,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """A tool call of a step. `decision` is that of policy, if it was evaluated; `began` is
    monotonic time."""

    id: ToolCallId
    node_id: str
    tool: Tool
    params: JsonObject
    decision: Decision | None
    began: float


def step_call_entry(
    context: NodeContext, call: StepCall, result: ToolResult, *, at: datetime, duration_ms: int
) -> AuditEvent:
    """The audit entry for a settled call, attributed to the starter of the workflow."""
    details: JsonObject = {"workflow_run_id": context.workflow_run_id, "node_id": call.node_id}
    if result.error_code is not None:
        details["error"] = result.error_code
    if call.decision is not None:
        details["decision"] = call.decision.as_json()
    return AuditEvent(
        id=AuditEventId(derived_id("aud", call.id, "settled")),
        organization_id=context.organization_id,
        action=OUTCOME_ACTIONS[result.outcome],
        actor=context.requested_by,
        resource=call.id,
        at=at,
        tool=call.tool.name,
        server_id=None if call.tool.mcp is None else call.tool.mcp.server_id,
        duration_ms=duration_ms,
        arguments_digest=canonical_digest(call.params),
        details=details,
    )
