"""ReplayWorkflowRun: a new run that takes over what an earlier one has done, and executes from a
node on."""

from dataclasses import dataclass

from application.system.ports import Clock
from application.workflows.ports import WorkflowRunStore, WorkflowStore
from application.workflows.run_access import require_own_or_operator
from application.workflows.start_workflow_run import (
    Replay,
    StartWorkflowRun,
    StartWorkflowRunCommand,
    not_runnable,
)
from application.workflows.workflow_lookup import existing_workflow
from domain.identity.api_key import Principal
from domain.ids import WorkflowRunId
from domain.workflows.compiler import compile_workflow
from domain.workflows.replay import alone, replayed_from
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWorkflowRunCommand:
    """`alone`: only the node and its tools are executed."""

    principal: Principal
    run_id: WorkflowRunId
    node_id: str
    alone: bool = False


class ReplayWorkflowRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others. The earlier run stays as
      it is.
    - The new run has the input of the earlier one, and executes the newest version of the workflow.
    - `replayed_from` and `alone` decide which nodes it executes.
    - Otherwise as `StartWorkflowRun`, audited with the earlier run and the node.
    """

    def __init__(
        self, *, workflows: WorkflowStore, runs: WorkflowRunStore, start_workflow_run: StartWorkflowRun, clock: Clock
    ) -> None:
        self._workflows = workflows
        self._runs = runs
        self._start = start_workflow_run
        self._clock = clock

    async def execute(self, command: ReplayWorkflowRunCommand) -> WorkflowRun:
        """The stored run, QUEUED. Raises NOT_FOUND, FORBIDDEN, INVALID `node_not_a_step`, CONFLICT
        `node_input_missing`, and what `StartWorkflowRun` raises."""
        principal = command.principal
        earlier = await require_own_or_operator(self._runs, principal, command.run_id)
        workflow = await existing_workflow(self._workflows, principal, earlier.workflow_id)
        plan = compile_workflow(workflow.definition).plan
        if plan is None:
            raise not_runnable()
        nodes = (
            alone(plan, earlier.nodes, command.node_id, at=self._clock.now())
            if command.alone
            else replayed_from(plan, earlier.nodes, command.node_id)
        )
        replay = Replay(run_id=earlier.id, node_id=command.node_id, alone=command.alone, nodes=nodes, team=earlier.team)
        started = await self._start.execute(
            StartWorkflowRunCommand(
                principal=principal, workflow=earlier.workflow_id, input=earlier.input, replay=replay
            )
        )
        return started.run
