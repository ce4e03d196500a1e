"""A node within a workflow run, as a state machine whose illegal transitions raise."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.ids import RunId
from domain.json_value import JsonValue
from domain.workflows.graph import HttpRequestConfig, McpServerConfig, NodeMode
from domain.workflows.plan import PlannedNode


class NodeStatus(StrEnum):
    """Where a node of a workflow run stands; values are part of the public contract."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    READY = "ready"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to the node; a tool that is ready has done its part."""
        return self in _FINAL


_FINAL = frozenset(
    {NodeStatus.READY, NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.CANCELLED}
)

UPSTREAM_FAILED = "upstream_failed"
TOOL_UNAVAILABLE = "tool_unavailable"
TOOLS_NOT_READY = "tools_not_ready"
NODE_TIMEOUT = "node_timeout"
OUTCOME_UNKNOWN = "outcome_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError:
    """Why a node failed: a stable code and a sentence safe to show. `retryable`: it may go better another time."""

    code: str
    detail: str
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """A node within a workflow run.

    `attempt` counts how often it was started. `handle` is the way out that was taken. `due_at` is when something has to
    happen of itself: pending nodes are tried again, or have waited too long for their tools; waiting ones have waited
    too long for a person. `run_id` is the agent's run, `asked` what a person is asked, or what calls the agent's run waits
    for; that was so when `run_seq` was the number of the run's newest event.
    """

    node_id: str
    status: NodeStatus = NodeStatus.PENDING
    attempt: int = 0
    output: JsonValue = None
    handle: str | None = None
    error: NodeError | None = None
    due_at: datetime | None = None
    run_id: RunId | None = None
    asked: JsonValue = None
    run_seq: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    def started(self, *, at: datetime) -> "NodeRun":
        """Executed, once more if it was before."""
        self._require(NodeStatus.PENDING)
        return replace(
            self,
            status=NodeStatus.RUNNING,
            attempt=self.attempt + 1,
            due_at=None,
            error=None,
            started_at=self.started_at or at,
        )

    def waiting(self, *, due_at: datetime | None, asked: JsonValue = None, run_seq: int | None = None) -> "NodeRun":
        """Nobody works on it: a person is asked, or the agent's run waits for somebody."""
        self._require(NodeStatus.RUNNING)
        return replace(self, status=NodeStatus.WAITING, due_at=due_at, asked=asked, run_seq=run_seq)

    def resumed(self) -> "NodeRun":
        """The agent's run does not wait for the same any more."""
        self._require(NodeStatus.WAITING)
        return replace(self, status=NodeStatus.RUNNING, due_at=None, asked=None, run_seq=None)

    @property
    def waits_for_run(self) -> RunId | None:
        """The agent's run that has to go on first."""
        return self.run_id if self.status is NodeStatus.WAITING else None

    def ready(self, *, at: datetime) -> "NodeRun":
        """The tool is registered."""
        self._require(NodeStatus.RUNNING)
        return replace(self, status=NodeStatus.READY, finished_at=at)

    def succeeded(self, output: JsonValue, *, at: datetime, handle: str | None = None) -> "NodeRun":
        """Done."""
        self._require(NodeStatus.RUNNING, NodeStatus.WAITING)
        return replace(self, status=NodeStatus.SUCCEEDED, output=output, handle=handle, due_at=None, finished_at=at)

    def failed(self, error: NodeError, *, at: datetime) -> "NodeRun":
        """Failed for good."""
        self._require(NodeStatus.PENDING, NodeStatus.RUNNING, NodeStatus.WAITING)
        return replace(self, status=NodeStatus.FAILED, error=error, due_at=None, finished_at=at)

    def attempt_failed(self, error: NodeError, node: PlannedNode, *, at: datetime) -> "NodeRun":
        """Failed; to be tried again where that may help and the node says so."""
        retry = node.settings.retry
        if not error.retryable or self.attempt >= retry.attempts:
            return self.failed(error, at=at)
        self._require(NodeStatus.RUNNING)
        wait = timedelta(seconds=retry.delay_s * 2 ** (self.attempt - 1))
        return replace(self, status=NodeStatus.PENDING, error=error, due_at=at + wait, run_id=None)

    def interrupted(self, node: PlannedNode, *, at: datetime) -> "NodeRun":
        """Whoever executed the node is gone, and its outcome is not known: it is executed again if that does no harm.
        What was interrupted does not count as an attempt."""
        self._require(NodeStatus.RUNNING)
        if is_repeatable(node):
            attempt = self.attempt - 1
            return replace(self, status=NodeStatus.PENDING, attempt=attempt, due_at=at if attempt else None)
        detail = "The node was interrupted, and it is not known whether it had its effect. It was not repeated."
        return self.failed(NodeError(code=OUTCOME_UNKNOWN, detail=detail), at=at)

    def skipped(self, error: NodeError | None, *, at: datetime) -> "NodeRun":
        """Not executed: no way led to it, or what came before failed (`error`)."""
        self._require(NodeStatus.PENDING)
        return replace(self, status=NodeStatus.SKIPPED, error=error, due_at=None, finished_at=at)

    def cancelled(self, *, at: datetime, node: PlannedNode | None = None) -> "NodeRun":
        """Not needed any more. Of one that is executed just then, and may not be repeated, it is said that its effect is
        not known."""
        self._require(NodeStatus.PENDING, NodeStatus.RUNNING, NodeStatus.WAITING)
        error = None
        if self.status is NodeStatus.RUNNING and node is not None and not is_repeatable(node):
            detail = "The node was cancelled while it was executed, and it is not known whether it had its effect."
            error = NodeError(code=OUTCOME_UNKNOWN, detail=detail)
        return replace(self, status=NodeStatus.CANCELLED, error=error, due_at=None, finished_at=at)

    def _require(self, *legal: NodeStatus) -> None:
        if self.status not in legal:
            raise ValueError(f"node {self.node_id} is {self.status}")


def is_repeatable(node: PlannedNode) -> bool:
    """Whether executing the node twice does no harm, or is seen to by its own means (an agent's run is one row)."""
    match node.config:
        case HttpRequestConfig(idempotent=idempotent) if node.mode is NodeMode.NORMAL:
            return idempotent
        case McpServerConfig(idempotent=idempotent) if node.mode is NodeMode.NORMAL:
            return idempotent
        case _:
            return True
