"""StopWorkflowRun: cancel a workflow run, at once if no worker executes it, else by a request to
its worker."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.runs.ports import RunQueue
from application.system.ports import Clock, IdSource
from application.tracing.ports import WorkflowRecord, WorkflowTracer
from application.workflows.node_execution import ToolRegistrar
from application.workflows.ports import WorkflowRunStore
from application.workflows.run_access import require_own_or_operator
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import RunId, WorkflowRunId
from domain.workflows.compiler import compile_workflow
from domain.workflows.run import WorkflowRun, WorkflowRunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWorkflowRunCommand:
    principal: Principal
    run_id: WorkflowRunId


class StopWorkflowRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others.
    - `WorkflowRun.asked_to_stop` decides. Stopping an ended run changes nothing.
    - The runs of its agents are cancelled with it, by the worker that has the run or claims it for
      that.
    - Audited as `workflow.run_stopped`.
    """

    def __init__(
        self,
        *,
        runs: WorkflowRunStore,
        queue: RunQueue,
        tools: ToolRegistrar,
        clock: Clock,
        ids: IdSource,
        tracer: WorkflowTracer,
    ) -> None:
        self._runs = runs
        self._queue = queue
        self._tracer = tracer
        self._tools = tools
        self._clock = clock
        self._ids = ids

    async def execute(self, command: StopWorkflowRunCommand) -> WorkflowRun:
        """The current run. Raises NOT_FOUND, FORBIDDEN."""
        principal = command.principal
        run = await require_own_or_operator(self._runs, principal, command.run_id)
        now = self._clock.now()
        audit = audit_entry(principal, AuditAction.WORKFLOW_RUN_STOPPED, run.id, ids=self._ids, at=now)
        stopped = await self._runs.change(
            principal.organization_id,
            run.id,
            lambda stored: stored.asked_to_stop(principal.key_id, at=now),
            at=now,
            audit=audit,
        )
        if stopped is None:
            raise not_found("workflow run", command.run_id)
        if stopped.status.is_terminal and not run.status.is_terminal:
            definition = await self._runs.definition(principal.organization_id, stopped)
            self._tracer.workflow_finished(WorkflowRecord(run=stopped, definition=definition))
            plan = compile_workflow(definition).plan
            if plan is not None:
                await self._tools.release(stopped, plan)
        if stopped.status is WorkflowRunStatus.QUEUED:
            await self._queue.submit(RunId(stopped.id))
        return stopped
