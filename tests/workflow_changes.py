"""Decisions about stored workflow runs, as the use cases make them through
`WorkflowRunStore.change`."""

from collections.abc import Mapping
from datetime import datetime

from application.workflows.ports import WorkflowRunStore
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.ids import OrganizationId, WorkflowRunId
from domain.json_value import JsonValue
from domain.workflows.run import WorkflowRun


async def stop_run(
    runs: WorkflowRunStore,
    organization_id: OrganizationId,
    run_id: WorkflowRunId,
    *,
    actor: str,
    at: datetime,
    audit: AuditEvent,
) -> WorkflowRun | None:
    """Ask the run to stop; None if there is no such run."""
    return await runs.change(organization_id, run_id, lambda run: run.asked_to_stop(actor, at=at), at=at, audit=audit)


async def answer_run(
    runs: WorkflowRunStore,
    organization_id: OrganizationId,
    run_id: WorkflowRunId,
    answers: Mapping[str, JsonValue],
    *,
    at: datetime,
    audit: AuditEvent,
) -> WorkflowRun:
    """Give a person's answers to waiting nodes. Raises what `WorkflowRun.answered` raises, and
    NOT_FOUND."""
    answered = await runs.change(organization_id, run_id, lambda run: run.answered(answers, at=at), at=at, audit=audit)
    if answered is None:
        raise not_found("workflow run", run_id)
    return answered
