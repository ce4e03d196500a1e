"""Audit entries of workflow runs that end by themselves."""

from datetime import datetime

from application.system.ports import IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId
from domain.json_value import JsonObject
from domain.workflows.run import WorkflowRun, WorkflowRunStatus

_ACTIONS = {
    WorkflowRunStatus.COMPLETED: AuditAction.WORKFLOW_RUN_COMPLETED,
    WorkflowRunStatus.FAILED: AuditAction.WORKFLOW_RUN_FAILED,
    WorkflowRunStatus.CANCELLED: AuditAction.WORKFLOW_RUN_CANCELLED,
}


def ended_entry(run: WorkflowRun, *, ids: IdSource, at: datetime) -> AuditEvent:
    """The entry that says how the run ended; whoever asked for a stop is its actor."""
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
