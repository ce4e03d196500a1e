"""A workflow run: its stored state, its transitions and its events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from domain.errors import ServiceError, conflict
from domain.ids import ApiKeyId, OrganizationId, WorkflowId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.workflows.execution import NodeError, NodeRun, NodeStatus

NOT_WAITING = "workflow_run_not_waiting"


class WorkflowRunStatus(StrEnum):
    """The status of a workflow run. The values are part of the public contract."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    REQUIRES_ACTION = "requires_action"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL_WORKFLOW_STATUSES


_GOES_ON = frozenset({WorkflowRunStatus.QUEUED, WorkflowRunStatus.IN_PROGRESS})
TERMINAL_WORKFLOW_STATUSES = frozenset(
    {WorkflowRunStatus.COMPLETED, WorkflowRunStatus.FAILED, WorkflowRunStatus.CANCELLED}
)


class WorkflowEventType(StrEnum):
    """The events of a workflow run. The values are part of the public contract."""

    QUEUED = "workflow.queued"
    STARTED = "workflow.started"
    NODE_STARTED = "node.started"
    NODE_RETRYING = "node.retrying"
    NODE_WAITING = "node.waiting"
    NODE_RESUMED = "node.resumed"
    NODE_READY = "node.ready"
    NODE_SUCCEEDED = "node.succeeded"
    NODE_FAILED = "node.failed"
    NODE_SKIPPED = "node.skipped"
    NODE_CANCELLED = "node.cancelled"
    REQUIRES_ACTION = "workflow.requires_action"
    RESUMED = "workflow.resumed"
    COMPLETED = "workflow.completed"
    FAILED = "workflow.failed"
    CANCELLED = "workflow.cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflowEvent:
    """An event without its number."""

    type: WorkflowEventType
    at: datetime
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvent:
    """An event of a workflow run; `seq` counts from 1 without gaps."""

    seq: int
    type: WorkflowEventType
    at: datetime
    data: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """One execution of a workflow at one of its versions.

    - `nodes` holds the nodes with a state other than the initial one.
    - `attempt` counts the claims by workers; `epoch` fences writes of former workers.
    - `wake_at` is when a suspended run resumes by itself.
    - `team` is whose the run is: that of the workflow when it started.
    """

    id: WorkflowRunId
    organization_id: OrganizationId
    workflow_id: WorkflowId
    workflow_version: int
    status: WorkflowRunStatus
    input: JsonValue
    requested_by: ApiKeyId
    created_at: datetime
    nodes: Mapping[str, NodeRun] = field(default_factory=dict)
    output: JsonValue = None
    error: NodeError | None = None
    failed_node: str | None = None
    attempt: int = 0
    epoch: int = 0
    last_seq: int = 0
    wake_at: datetime | None = None
    cancel_requested_by: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    team: str | None = None

    @property
    def waiting_nodes(self) -> tuple[NodeRun, ...]:
        """The nodes that wait for a person, or for an agent's run that is suspended."""
        return tuple(node for node in self.nodes.values() if node.status is NodeStatus.WAITING)

    def claimed(self, *, at: datetime) -> "WorkflowRun":
        """A worker claims the run: a new epoch begins."""
        self._require(WorkflowRunStatus.QUEUED, WorkflowRunStatus.REQUIRES_ACTION)
        return replace(
            self,
            status=WorkflowRunStatus.IN_PROGRESS,
            epoch=self.epoch + 1,
            attempt=self.attempt + 1,
            wake_at=None,
            started_at=self.started_at or at,
        )

    def handed_back(self) -> "WorkflowRun":
        """The worker hands the run back, or its lease expired."""
        self._require(WorkflowRunStatus.IN_PROGRESS)
        return replace(self, status=WorkflowRunStatus.QUEUED, epoch=self.epoch + 1)

    def suspended(self, *, wake_at: datetime | None) -> "WorkflowRun":
        """The run is suspended until a person answers, an agent's run resumes, or `wake_at` is
        reached."""
        self._require(WorkflowRunStatus.IN_PROGRESS)
        return replace(self, status=WorkflowRunStatus.REQUIRES_ACTION, wake_at=wake_at)

    def answered(self, answers: Mapping[str, JsonValue], *, at: datetime) -> "WorkflowRun":
        """Apply a person's answers to waiting nodes. Raises CONFLICT `workflow_run_not_waiting`,
        `node_not_waiting`."""
        if self.status is not WorkflowRunStatus.REQUIRES_ACTION:
            raise conflict(NOT_WAITING, f"The workflow run {self.id} is {self.status}.")
        nodes = dict(self.nodes)
        for node_id, answer in answers.items():
            node = nodes.get(node_id)
            if node is None or node.status is not NodeStatus.WAITING:
                raise conflict("node_not_waiting", f"The node {node_id!r} is not waiting for an answer.")
            if node.run_id is not None:
                raise conflict(
                    "node_not_waiting",
                    f"The node {node_id!r} is waiting for calls of its agent's run, not for an answer.",
                )
            nodes[node_id] = node.answered(answer, at=at)
        return replace(self, status=WorkflowRunStatus.QUEUED, nodes=nodes, wake_at=None)

    def asked_to_stop(self, actor: str, *, at: datetime) -> "WorkflowRun":
        """Request cancellation.

        - A run that has ended, or was asked before, stays as it is.
        - A run that is executing is marked; its worker stops it.
        - A suspended run with unfinished agent runs is queued, and the next worker stops it.
        - Any other run is cancelled at once.
        """
        if self.status.is_terminal or self.cancel_requested_by is not None:
            return self
        asked = replace(self, cancel_requested_by=actor)
        if self.status is WorkflowRunStatus.IN_PROGRESS:
            return asked
        if any(node.run_id is not None and not node.status.is_final for node in self.nodes.values()):
            return replace(asked, status=WorkflowRunStatus.QUEUED, wake_at=None)
        return asked.ended(WorkflowRunStatus.CANCELLED, at=at)

    def ended(
        self,
        status: WorkflowRunStatus,
        *,
        at: datetime,
        output: JsonValue = None,
        error: NodeError | None = None,
        failed_node: str | None = None,
    ) -> "WorkflowRun":
        """The run ends; unfinished nodes are cancelled."""
        if self.status.is_terminal:
            raise self._illegal(status)
        nodes = {
            node_id: node if node.status.is_final else node.cancelled(at=at) for node_id, node in self.nodes.items()
        }
        return replace(
            self,
            status=status,
            nodes=nodes,
            output=output,
            error=error,
            failed_node=failed_node,
            wake_at=None,
            finished_at=at,
        )

    def _require(self, *legal: WorkflowRunStatus) -> None:
        if self.status not in legal:
            raise self._illegal(WorkflowRunStatus.IN_PROGRESS)

    def _illegal(self, status: WorkflowRunStatus) -> ServiceError:
        return conflict(
            "workflow_run_transition_illegal", f"Workflow run {self.id} is {self.status} and cannot become {status}."
        )


def events_between(before: WorkflowRun | None, after: WorkflowRun, *, at: datetime) -> tuple[NewWorkflowEvent, ...]:
    """The events of a change; `before` is None for a new run."""
    known = {} if before is None else before.nodes
    return (
        *_beginning(before, after, at),
        *(
            event
            for node_id, node in after.nodes.items()
            if (event := _node_event(known.get(node_id), node, at)) is not None
        ),
        *_end(before, after, at),
    )


def _beginning(before: WorkflowRun | None, after: WorkflowRun, at: datetime) -> Iterator[NewWorkflowEvent]:
    if before is None:
        yield NewWorkflowEvent(type=WorkflowEventType.QUEUED, at=at)
    elif before.status is WorkflowRunStatus.REQUIRES_ACTION and after.status in _GOES_ON:
        if after.cancel_requested_by is None:
            yield NewWorkflowEvent(type=WorkflowEventType.RESUMED, at=at)
    elif before.attempt == 0 and after.attempt == 1:
        yield NewWorkflowEvent(type=WorkflowEventType.STARTED, at=at)


_NODE_EVENTS = {
    NodeStatus.READY: WorkflowEventType.NODE_READY,
    NodeStatus.SKIPPED: WorkflowEventType.NODE_SKIPPED,
}


def _handle_data(node: NodeRun) -> JsonObject:
    return {} if node.handle is None else {"handle": node.handle}


def _error_data(node: NodeRun) -> JsonObject:
    return {} if node.error is None else {"error": error_json(node.error)}


def _node_event(before: NodeRun | None, after: NodeRun, at: datetime) -> NewWorkflowEvent | None:
    if before is not None and (before.status, before.attempt) == (after.status, after.attempt):
        return None
    data: JsonObject = {"node_id": after.node_id}
    match after.status:
        case NodeStatus.PENDING:
            return _pending_event(before, after, at)
        case NodeStatus.RUNNING:
            waited = before is not None and before.status is NodeStatus.WAITING
            kind = WorkflowEventType.NODE_RESUMED if waited else WorkflowEventType.NODE_STARTED
            data |= {"attempt": after.attempt}
        case NodeStatus.WAITING:
            kind, data = WorkflowEventType.NODE_WAITING, data | {"run_id": after.run_id, "asked": after.asked}
        case NodeStatus.SUCCEEDED:
            kind = WorkflowEventType.NODE_SUCCEEDED
            data |= _handle_data(after)
        case NodeStatus.FAILED:
            kind, data = WorkflowEventType.NODE_FAILED, data | {"error": error_json(after.error)}
        case NodeStatus.CANCELLED:
            kind = WorkflowEventType.NODE_CANCELLED
            data |= _error_data(after)
        case NodeStatus.READY | NodeStatus.SKIPPED:
            kind = _NODE_EVENTS[after.status]
        case _:
            assert_never(after.status)
    return NewWorkflowEvent(type=kind, at=at, data=data)


def _pending_event(before: NodeRun | None, after: NodeRun, at: datetime) -> NewWorkflowEvent | None:
    """The node is executed again: what it waited for has happened, or its last attempt failed."""
    data: JsonObject = {"node_id": after.node_id}
    if before is not None and before.status is NodeStatus.WAITING:
        data |= {"attempt": after.attempt + 1}
        return NewWorkflowEvent(type=WorkflowEventType.NODE_RESUMED, at=at, data=data)
    if after.error is None or after.due_at is None:
        return None
    data |= {"attempt": after.attempt, "error": error_json(after.error)}
    return NewWorkflowEvent(type=WorkflowEventType.NODE_RETRYING, at=at, data=data)


def _end(before: WorkflowRun | None, after: WorkflowRun, at: datetime) -> Iterator[NewWorkflowEvent]:
    if before is not None and before.status is after.status:
        return
    match after.status:
        case WorkflowRunStatus.REQUIRES_ACTION:
            pending: list[JsonValue] = [
                {"node_id": node.node_id, "run_id": node.run_id, "asked": node.asked} for node in after.waiting_nodes
            ]
            yield NewWorkflowEvent(type=WorkflowEventType.REQUIRES_ACTION, at=at, data={"pending": pending})
        case WorkflowRunStatus.COMPLETED:
            yield NewWorkflowEvent(type=WorkflowEventType.COMPLETED, at=at)
        case WorkflowRunStatus.FAILED:
            data: JsonObject = {"error": error_json(after.error), "node_id": after.failed_node}
            yield NewWorkflowEvent(type=WorkflowEventType.FAILED, at=at, data=data)
        case WorkflowRunStatus.CANCELLED:
            yield NewWorkflowEvent(type=WorkflowEventType.CANCELLED, at=at)
        case _:
            return


def error_json(error: NodeError | None) -> JsonValue:
    """`{code, detail}`, or null."""
    return None if error is None else {"code": error.code, "detail": error.detail}
