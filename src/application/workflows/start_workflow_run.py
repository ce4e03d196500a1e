"""StartWorkflowRun: execute a workflow in the background."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.policy.ports import SchemaValidator
from application.runs.new_run import IdempotencyKey
from application.runs.ports import RunQueue
from application.secrets.ports import SecretStore
from application.system.ports import Clock, IdSource
from application.workflows.ports import WorkflowRunStore, WorkflowStore
from application.workflows.workflow_lookup import existing_workflow
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WORKFLOW_RUN_PREFIX, OrganizationId, RunId, WorkflowRunId
from domain.json_value import JsonValue
from domain.teams import may_use
from domain.workflows.compiler import Compilation, compile_workflow
from domain.workflows.execution import NodeRun
from domain.workflows.graph import EntrypointConfig, Workflow
from domain.workflows.plan import Plan
from domain.workflows.run import WorkflowRun, WorkflowRunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a run takes over: `nodes` in their states, from `run_id`, to execute from `node_id` on
    or it alone. `team` is that of the earlier run."""

    run_id: WorkflowRunId
    node_id: str
    alone: bool
    nodes: Mapping[str, NodeRun]
    team: str | None = None

    @property
    def audited(self) -> dict[str, JsonValue]:
        return {"replay_of": self.run_id, "node_id": self.node_id, "alone": self.alone}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorkflowRunCommand:
    """`workflow` is an id or a name; `input` becomes the output of the entrypoint."""

    principal: Principal
    workflow: str
    input: JsonValue = None
    idempotency: IdempotencyKey | None = None
    replay: Replay | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedWorkflowRun:
    """The run, and whether it is new: an idempotency key may name an earlier one."""

    run: WorkflowRun
    created: bool


class StartWorkflowRun:
    """Rules:
    - Requires `runner`. The input must fit the entrypoint's schema.
    - The run executes the newest version, whatever happens to the workflow later.
    - It belongs to the team of the workflow. What it takes over from a run of a team stays with
      this team.
    - Every secret that it refers to must exist.
    - Audited as `workflow.run_started`.
    """

    def __init__(
        self,
        *,
        workflows: WorkflowStore,
        runs: WorkflowRunStore,
        secrets: SecretStore,
        schemas: SchemaValidator,
        queue: RunQueue,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._workflows = workflows
        self._runs = runs
        self._secrets = secrets
        self._schemas = schemas
        self._queue = queue
        self._clock = clock
        self._ids = ids

    async def execute(self, command: StartWorkflowRunCommand) -> StartedWorkflowRun:
        """The stored run, QUEUED. Raises FORBIDDEN, NOT_FOUND, CONFLICT `workflow_not_runnable`,
        `workflow_run_of_another_team`, `secret_missing`, INVALID `workflow_input_invalid`,
        `idempotency_key_reused`."""
        principal = command.principal
        principal.require(Permission.RUNS_START)
        now = self._clock.now()
        if command.idempotency is not None:
            earlier = await self._runs.started_before(principal.organization_id, command.idempotency, at=now)
            if earlier is not None:
                return _earlier(command, earlier)
        workflow = await existing_workflow(self._workflows, principal, command.workflow)
        compilation = compile_workflow(workflow.definition)
        plan = compilation.plan
        if plan is None:
            raise not_runnable()
        await self._require_secrets(principal.organization_id, compilation)
        self._check_input(plan, command.input)
        run = WorkflowRun(
            id=WorkflowRunId(self._ids.new(WORKFLOW_RUN_PREFIX)),
            organization_id=principal.organization_id,
            workflow_id=workflow.id,
            workflow_version=workflow.version,
            status=WorkflowRunStatus.QUEUED,
            input=command.input,
            requested_by=principal.key_id,
            created_at=now,
            nodes={} if command.replay is None else command.replay.nodes,
            team=_team(workflow, command.replay),
        )
        details: dict[str, JsonValue] = {"workflow_id": workflow.id, "version": workflow.version}
        if command.replay is not None:
            details |= command.replay.audited
        audit = audit_entry(principal, AuditAction.WORKFLOW_RUN_STARTED, run.id, ids=self._ids, at=now, details=details)
        stored = await self._runs.start(run, audit, idempotency=command.idempotency)
        if stored.id != run.id:
            return _earlier(command, stored)
        await self._queue.submit(RunId(run.id))
        return StartedWorkflowRun(run=stored, created=True)

    async def _require_secrets(self, organization_id: OrganizationId, compilation: Compilation) -> None:
        missing = {
            placed.text: placed.node_id
            for placed in reversed(compilation.secrets)
            if await self._secrets.get(organization_id, placed.text) is None
        }
        if missing:
            named = ", ".join(f"{name!r} of the node {node_id!r}" for name, node_id in sorted(missing.items()))
            raise ServiceError("secret_missing", ErrorKind.CONFLICT, f"These secrets do not exist: {named}.")

    def _check_input(self, plan: Plan, given: JsonValue) -> None:
        config = plan.entrypoint.config
        if not isinstance(config, EntrypointConfig) or config.schema is None:
            return
        wrong = [
            Violation(path="input", message=sentence) for sentence in self._schemas.violations(config.schema, given)
        ]
        if wrong:
            raise invalid("workflow_input_invalid", "The input does not fit the workflow's entrypoint.", *wrong)


def _earlier(command: StartWorkflowRunCommand, run: WorkflowRun) -> StartedWorkflowRun:
    """The run that the idempotency key names. Raises NOT_FOUND if the caller does not see it."""
    return StartedWorkflowRun(run=command.principal.found(run, "workflow", command.workflow), created=False)


def _team(workflow: Workflow, replay: Replay | None) -> str | None:
    """Raises CONFLICT `workflow_run_of_another_team`."""
    of_replayed = None if replay is None else replay.team
    if of_replayed is not None and not may_use(of_replayed, workflow.team):
        assert replay is not None
        detail = f"The workflow run {replay.run_id} and the workflow belong to different teams."
        raise conflict("workflow_run_of_another_team", detail)
    return of_replayed or workflow.team


def not_runnable() -> ServiceError:
    detail = "This version of Dragoman no longer accepts the workflow; save it again."
    return ServiceError("workflow_not_runnable", ErrorKind.CONFLICT, detail)
