"""Access to a workflow run: its starter and operators."""

from application.workflows.ports import WorkflowRunStore
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WorkflowRunId
from domain.workflows.run import WorkflowRun


async def existing_run(runs: WorkflowRunStore, principal: Principal, run_id: WorkflowRunId) -> WorkflowRun:
    """Raises NOT_FOUND `workflow_run_not_found`, also for a run of a team that the caller does not
    see."""
    return principal.found(await runs.get(principal.organization_id, run_id), "workflow run", run_id)


async def require_own_or_operator(runs: WorkflowRunStore, principal: Principal, run_id: WorkflowRunId) -> WorkflowRun:
    principal.require(Permission.RUNS_START)
    run = await existing_run(runs, principal, run_id)
    if run.requested_by != principal.key_id and not principal.may(Permission.RUNS_CONTROL):
        raise ServiceError(
            "run_not_yours",
            ErrorKind.FORBIDDEN,
            "A runner may act only on workflow runs that it started; an operator on any.",
        )
    return run
