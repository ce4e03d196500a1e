"""Ports of the workflows slice."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.runs.new_run import IdempotencyKey
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import ApiKeyId, OrganizationId, WorkerId, WorkflowId, WorkflowRunId
from domain.json_value import JsonValue
from domain.runs.run import Run, RunStatus
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.graph import Workflow, WorkflowDefinition
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus


class WorkflowStore(Protocol):
    """Workflows with all their versions. Each write includes its audit event. Entries of pages have
    no `text`."""

    async def add(self, workflow: Workflow, audit: AuditEvent) -> None:
        """Raises CONFLICT `workflow_name_taken` if the name is in use in the organization."""

    async def save(self, workflow: Workflow, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version. Raises NOT_FOUND, PRECONDITION `version_conflict` if the stored
        version is not `expected_version`, CONFLICT `workflow_name_taken` if the new name is in
        use."""

    async def get(self, organization_id: OrganizationId, workflow_id: WorkflowId) -> Workflow | None:
        """The newest version, or None."""

    async def version(self, organization_id: OrganizationId, workflow_id: WorkflowId, version: int) -> Workflow | None:
        """That version, or None."""

    async def find(self, organization_id: OrganizationId, name: str) -> Workflow | None:
        """The newest version of the named workflow, or None."""

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Workflow]:
        """Workflows at their newest version, newest workflow first."""

    async def versions(
        self, organization_id: OrganizationId, workflow_id: WorkflowId, request: PageRequest
    ) -> Page[Workflow]:
        """All versions of one workflow, newest first; empty if the workflow does not exist."""

    async def delete(self, organization_id: OrganizationId, workflow_id: WorkflowId, audit: AuditEvent) -> bool:
        """Remove the workflow from use; its name becomes free. False if it does not exist."""


EXPRESSION_FAILED = "expression_failed"
EXPRESSION_TOO_COSTLY = "expression_too_costly"
"""The work of an expression over its value is above the bound."""


class ExpressionFailed(Exception):
    """An expression has no value for its input. The message is written for people."""

    def __init__(self, message: str, *, code: str = EXPRESSION_FAILED) -> None:
        super().__init__(message)
        self.code = code


class Expressions(Protocol):
    """JMESPath (https://jmespath.org/specification.html)."""

    def problem_with(self, expression: str) -> str | None:
        """The reason why the expression is unusable, as a clause without a full stop, or None."""

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """The value. Costly work runs outside the event loop with a deadline. Raises
        ExpressionFailed."""


# --- runs of workflows ---


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunFilter:
    """Conditions that all must hold; None does not restrict. `requested_by` started the run, also
    acting as another user."""

    workflow_id: WorkflowId | None = None
    status: WorkflowRunStatus | None = None
    requested_by: ApiKeyId | None = None
    is_unfinished: bool | None = None


Decide = Callable[[WorkflowRun], WorkflowRun]
"""A pure decision about a workflow run. Returning the same run changes nothing."""


class WorkflowRunStore(Protocol):
    """Workflow runs as the API sees them. Every change also stores its events (`events_between`)
    and signals followers after the commit."""

    async def start(
        self, run: WorkflowRun, audit: AuditEvent, *, idempotency: IdempotencyKey | None = None
    ) -> WorkflowRun:
        """Store a QUEUED run.
        - If the idempotency key named a run within the last 24 h, that run is returned; nothing is
          stored.
        - Raises NOT_FOUND if the workflow is not in use, INVALID `idempotency_key_reused` for the
          same key with another body.
        """

    async def started_before(
        self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
    ) -> WorkflowRun | None:
        """The run that the key named within 24 h before `at`, or None. `start` checks again.
        Raises INVALID `idempotency_key_reused`."""

    async def get(self, organization_id: OrganizationId, run_id: WorkflowRunId) -> WorkflowRun | None:
        """The run with its nodes, or None."""

    async def page(
        self, organization_id: OrganizationId, wanted: WorkflowRunFilter, request: PageRequest
    ) -> Page[WorkflowRun]:
        """Runs, newest first, without inputs, outputs and nodes, which may be large."""

    async def events(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, *, after_seq: int, limit: int
    ) -> tuple[WorkflowEvent, ...]:
        """Events with a higher seq, in order."""

    async def definition(self, organization_id: OrganizationId, run: WorkflowRun) -> WorkflowDefinition:
        """The definition that the run executes, even if the workflow was deleted."""

    async def change(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, decide: Decide, *, at: datetime, audit: AuditEvent
    ) -> WorkflowRun | None:
        """Store the result of `decide` for the locked run, with the audit entry; an unchanged
        run stores nothing. Returns the current run, None if it does not exist. If `decide`
        raises, nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowLease:
    """The right to write into a workflow run, valid while it is in progress at this epoch."""

    run_id: WorkflowRunId
    organization_id: OrganizationId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWorkflowRun:
    """A workflow run that this worker executes."""

    lease: WorkflowLease
    run: WorkflowRun
    definition: WorkflowDefinition


class WorkflowToolStore(Protocol):
    """Tools of unfinished workflow runs. Commits of the run add them; the ending transaction
    removes them."""

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        """The registered nodes among `nodes`, in the order of `node_ids`."""


class WorkflowJournal(Protocol):
    """Writes into a claimed workflow run; each method is one transaction."""

    async def claim(
        self, run_id: WorkflowRunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedWorkflowRun | None:
        """Claim a run that is queued or whose `wake_at` has passed. None if it cannot be
        claimed."""

    async def renew(
        self, worker_id: WorkerId, leases: tuple[WorkflowLease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[WorkflowRunId]:
        """Extend all leases in one statement. Returns runs whose lease is lost, or that have
        ended."""

    async def commit(
        self,
        lease: WorkflowLease,
        run: WorkflowRun,
        *,
        at: datetime,
        audit: tuple[AuditEvent, ...] = (),
        registered: tuple[RegisteredTool, ...] = (),
    ) -> WorkflowRun:
        """Store the run with changed nodes, tools that became ready, and events. Returns the stored
        run.
        - `last_seq` and `cancel_requested_by` stay as stored.
        - A run that ends loses its tools.
        - Raises LeaseLost; then nothing is stored.
        """

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[WorkflowRunId, ...]:
        """Runs to submit again: queued, expired, and suspended ones whose `wake_at` has passed.
        - Runs whose lease expired at `at` become QUEUED, which fences their former worker.
        - For the `sole_owner` of the database every lease has expired.
        """


WORKFLOWS_TOPIC = "workflows"
"""Signalled when an agent's run resumes, so that a workflow run that waits for it can resume
too."""


def may_let_workflow_go_on(run: Run) -> bool:
    """Whether a workflow run may have waited for this change of an agent's run. A superfluous
    signal is harmless; the periodic recovery finds missed ones."""
    waited = run.status in (RunStatus.REQUIRES_ACTION, RunStatus.CANCELLED)
    resumed = run.status is RunStatus.QUEUED and run.attempt > 0
    return (waited or resumed) and run.wired is not None


def workflow_events_topic(run_id: WorkflowRunId) -> str:
    """Signalled at every new event of the run."""
    return f"workflow.events:{run_id}"


def workflow_control_topic(run_id: WorkflowRunId) -> str:
    """Signalled when cancellation of the run is requested."""
    return f"workflow.control:{run_id}"
