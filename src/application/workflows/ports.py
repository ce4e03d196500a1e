"""Ports of the workflows slice."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.runs.ports import IdempotencyKey
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, WorkerId, WorkflowId, WorkflowRunId
from domain.json_value import JsonValue
from domain.runs.run import Run, RunStatus
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.graph import Workflow, WorkflowDefinition
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus


class WorkflowStore(Protocol):
    """Workflows with all their versions; each write carries the audit event that describes it."""

    async def add(self, workflow: Workflow, audit: AuditEvent) -> None:
        """Store a new workflow. Raises CONFLICT `workflow_name_taken` if the name is in use in the organization."""
        ...

    async def save(self, workflow: Workflow, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version. Raises NOT_FOUND, PRECONDITION `version_conflict` if the stored version is not
        `expected_version`, CONFLICT `workflow_name_taken` if the new name is in use."""
        ...

    async def get(self, organization_id: OrganizationId, workflow_id: WorkflowId) -> Workflow | None:
        """The newest version, or None."""
        ...

    async def find(self, organization_id: OrganizationId, name: str) -> Workflow | None:
        """The newest version of the workflow of that name, or None."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Workflow]:
        """Workflows at their newest version, newest workflow first."""
        ...

    async def versions(
        self, organization_id: OrganizationId, workflow_id: WorkflowId, request: PageRequest
    ) -> Page[Workflow]:
        """All versions of one workflow, newest first; empty if there is no such workflow."""
        ...

    async def delete(self, organization_id: OrganizationId, workflow_id: WorkflowId, audit: AuditEvent) -> bool:
        """Remove the workflow from use; its name becomes free. False if there is none."""
        ...


EXPRESSION_FAILED = "expression_failed"
EXPRESSION_TOO_COSTLY = "expression_too_costly"
"""The work of an expression over its value is above the bound."""


class ExpressionFailed(Exception):
    """An expression has no value over what it was given; the message is written for people."""

    def __init__(self, message: str, *, code: str = EXPRESSION_FAILED) -> None:
        super().__init__(message)
        self.code = code


class Expressions(Protocol):
    """JMESPath (https://jmespath.org/specification.html)."""

    def problem_with(self, expression: str) -> str | None:
        """Why it cannot be used, as a clause without a full stop, or None."""
        ...

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """Its value; costly work is done outside the event loop and has a deadline. Raises ExpressionFailed."""
        ...


# --- runs of workflows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunFilter:
    """Conditions that all must hold; None does not restrict."""

    workflow_id: WorkflowId | None = None
    status: WorkflowRunStatus | None = None


Decide = Callable[[WorkflowRun], WorkflowRun]
"""A pure decision about a workflow run; the same run, if it stays as it is."""


class WorkflowRunStore(Protocol):
    """Workflow runs as the API sees them. Every change stores the events that tell of it (`events_between`) with it, and
    wakes their followers after the commit."""

    async def start(
        self, run: WorkflowRun, audit: AuditEvent, *, idempotency: IdempotencyKey | None = None
    ) -> WorkflowRun:
        """Store a QUEUED run. With a key that named a run within the 24 h before, that run as it stands, and nothing is
        stored. Raises NOT_FOUND if its workflow is not in use, INVALID `idempotency_key_reused` for the same key with
        another body."""
        ...

    async def started_before(
        self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
    ) -> WorkflowRun | None:
        """The run that the key named within 24 h before `at`, as it stands, or None; changes nothing. Raises INVALID
        `idempotency_key_reused`. What counts in the end is `start`, which looks again."""
        ...

    async def get(self, organization_id: OrganizationId, run_id: WorkflowRunId) -> WorkflowRun | None:
        """The run with its nodes, or None."""
        ...

    async def page(
        self, organization_id: OrganizationId, wanted: WorkflowRunFilter, request: PageRequest
    ) -> Page[WorkflowRun]:
        """Runs, newest first, each without its input, its output and its nodes, which may be of any size."""
        ...

    async def events(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, *, after_seq: int, limit: int
    ) -> tuple[WorkflowEvent, ...]:
        """Events with a higher seq, in order."""
        ...

    async def definition(self, organization_id: OrganizationId, run: WorkflowRun) -> WorkflowDefinition:
        """What the run executes: its workflow at its version, even if it was deleted."""
        ...

    async def change(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, decide: Decide, *, at: datetime, audit: AuditEvent
    ) -> WorkflowRun | None:
        """Store what `decide` makes of the locked run, with the entry; nothing, if the run stays as it is. Returns the run as
        it is then; None if there is no such run. Raises what `decide` raises; then nothing was stored."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowLease:
    """The right to write into a workflow run: valid while it is in progress at this epoch."""

    run_id: WorkflowRunId
    organization_id: OrganizationId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWorkflowRun:
    """A run that this worker executes."""

    lease: WorkflowLease
    run: WorkflowRun
    definition: WorkflowDefinition


class WorkflowToolStore(Protocol):
    """Tools of unfinished workflow runs. They come with their run's commits, and go in the transaction that ends it."""

    async def of(self, organization_id: OrganizationId, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        """Those of the nodes that are registered, in the order of `node_ids`."""
        ...


class WorkflowJournal(Protocol):
    """Writing into a claimed workflow run; each method is one transaction."""

    async def claim(
        self, run_id: WorkflowRunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedWorkflowRun | None:
        """Take a run that is queued, or whose `wake_at` has come. None if it is not to be had."""
        ...

    async def renew(
        self, worker_id: WorkerId, leases: tuple[WorkflowLease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[WorkflowRunId]:
        """Extend all leases in one statement; returns the runs whose lease is lost (or over, the run having ended)."""
        ...

    async def commit(
        self,
        lease: WorkflowLease,
        run: WorkflowRun,
        *,
        at: datetime,
        audit: tuple[AuditEvent, ...] = (),
        registered: tuple[RegisteredTool, ...] = (),
    ) -> WorkflowRun:
        """Store the run as it is now, with the nodes that changed, the tools that became ready, and the events that tell of
        it; `last_seq` and `cancel_requested_by` stay as stored. A run that ends has no tools any more. Returns it so. Raises
        LeaseLost; then nothing was stored."""
        ...

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[WorkflowRunId, ...]:
        """Runs to submit again: those whose lease has expired at `at`, which are put back to QUEUED by this call (fencing
        their former worker), queued ones, and waiting ones whose `wake_at` has come. For the `sole_owner` of the database
        every lease has expired."""
        ...


WORKFLOWS_TOPIC = "workflows"
"""Woken when the run of a workflow's agent has gone on, so that a workflow run which waited for it may."""


def may_let_workflow_go_on(run: Run) -> bool:
    """Whether a workflow run may have waited for what happened to this run. A ring too many does no harm, and the sweep hears
    of the rest."""
    waited = run.status in (RunStatus.REQUIRES_ACTION, RunStatus.CANCELLED)
    resumed = run.status is RunStatus.QUEUED and run.attempt > 0
    return (waited or resumed) and run.wired is not None


def workflow_events_topic(run_id: WorkflowRunId) -> str:
    """Woken at every new event of the run."""
    return f"workflow.events:{run_id}"


def workflow_control_topic(run_id: WorkflowRunId) -> str:
    """Woken when the run is asked to stop."""
    return f"workflow.control:{run_id}"
