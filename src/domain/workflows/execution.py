"""A node within a workflow run, as a state machine. Illegal transitions raise."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.ids import RunId
from domain.json_value import JsonValue
from domain.workflows.account_wait import ACCEPT, ACCOUNT_DECLINED, AccountWait, account_wait_of
from domain.workflows.graph import HttpRequestConfig, McpServerNodeConfig, NodeMode
from domain.workflows.plan import PlannedNode


class NodeStatus(StrEnum):
    """The status of a node in a workflow run. The values are part of the public contract."""

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
        """Whether the status cannot change any more. A tool that is ready is final."""
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
    """Why a node failed: a stable code and a sentence safe to show. `retryable`: another attempt
    may succeed."""

    code: str
    detail: str
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """A node within a workflow run.

    - `attempt` counts its starts.
    - `handle` is the output handle that was taken.
    - `due_at` is a deadline: a pending node is retried, or fails because its tools are not ready; a
      waiting node fails because no person answered.
    - `run_id` is the agent's run. `asked` is the question to a person, the account that a person
      must connect (`AccountWait`), or the calls that the agent's run waits for, as of the run's
      event `run_seq`.
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
        """The node waits for a person, or for an agent's run that is suspended."""
        self._require(NodeStatus.RUNNING)
        return replace(self, status=NodeStatus.WAITING, due_at=due_at, asked=asked, run_seq=run_seq)

    def resumed(self) -> "NodeRun":
        """The agent's run no longer waits for the same input."""
        self._require(NodeStatus.WAITING)
        return replace(self, status=NodeStatus.RUNNING, due_at=None, asked=None, run_seq=None)

    @property
    def waits_for_run(self) -> RunId | None:
        """The agent's run that must continue first."""
        return self.run_id if self.status is NodeStatus.WAITING else None

    @property
    def waits_for_account(self) -> AccountWait | None:
        """The account that a person must connect first."""
        return account_wait_of(self.asked) if self.status is NodeStatus.WAITING else None

    @property
    def may_continue(self) -> bool:
        """Whether the node waits for something that happens elsewhere, not for a person's answer
        alone."""
        return self.waits_for_run is not None or self.waits_for_account is not None

    def continued(self, *, at: datetime) -> "NodeRun":
        """What the node waited for has happened."""
        return self.again(at=at) if self.run_id is None else self.resumed()

    def again(self, *, at: datetime) -> "NodeRun":
        """The account is connected. Nothing was sent before, so the same attempt is made again;
        what was asked stays, to count how often."""
        self._require(NodeStatus.WAITING)
        attempt = self.attempt - 1
        due_at = at if attempt else None
        return replace(self, status=NodeStatus.PENDING, attempt=attempt, due_at=due_at)

    def answered(self, answer: JsonValue, *, at: datetime) -> "NodeRun":
        """A person's answer is the node's output, or says whether their account is connected."""
        if self.waits_for_account is None:
            return self.succeeded(answer, at=at)
        if answer == ACCEPT:
            return self.again(at=at)
        detail = "A person declined to connect the account that the MCP server requires."
        return self.failed(NodeError(code=ACCOUNT_DECLINED, detail=detail), at=at)

    def ready(self, *, at: datetime) -> "NodeRun":
        self._require(NodeStatus.RUNNING)
        return replace(self, status=NodeStatus.READY, finished_at=at)

    def succeeded(self, output: JsonValue, *, at: datetime, handle: str | None = None) -> "NodeRun":
        self._require(NodeStatus.RUNNING, NodeStatus.WAITING)
        return replace(self, status=NodeStatus.SUCCEEDED, output=output, handle=handle, due_at=None, finished_at=at)

    def failed(self, error: NodeError, *, at: datetime) -> "NodeRun":
        self._require(NodeStatus.PENDING, NodeStatus.RUNNING, NodeStatus.WAITING)
        return replace(self, status=NodeStatus.FAILED, error=error, due_at=None, finished_at=at)

    def attempt_failed(self, error: NodeError, node: PlannedNode, *, at: datetime) -> "NodeRun":
        """The attempt failed. The node is retried if the error is retryable and the node has
        attempts left."""
        retry = node.settings.retry
        if not error.retryable or self.attempt >= retry.attempts:
            return self.failed(error, at=at)
        self._require(NodeStatus.RUNNING)
        wait = timedelta(seconds=retry.delay_s * 2 ** (self.attempt - 1))
        return replace(self, status=NodeStatus.PENDING, error=error, due_at=at + wait, run_id=None, asked=None)

    def interrupted(self, node: PlannedNode, *, at: datetime) -> "NodeRun":
        """The worker of the node was lost, so its outcome is unknown. The node is executed again if
        it is repeatable. An interrupted attempt is not counted."""
        self._require(NodeStatus.RUNNING)
        if is_repeatable(node):
            attempt = self.attempt - 1
            return replace(self, status=NodeStatus.PENDING, attempt=attempt, due_at=at if attempt else None)
        detail = "The node was interrupted, and it is not known whether it had its effect. It was not repeated."
        return self.failed(NodeError(code=OUTCOME_UNKNOWN, detail=detail), at=at)

    def skipped(self, error: NodeError | None, *, at: datetime) -> "NodeRun":
        """The node is not executed: no edge to it was taken, or an upstream node failed
        (`error`)."""
        self._require(NodeStatus.PENDING)
        return replace(self, status=NodeStatus.SKIPPED, error=error, due_at=None, finished_at=at)

    def cancelled(self, *, at: datetime, node: PlannedNode | None = None) -> "NodeRun":
        """The node is no longer needed. If it is executing and not repeatable, its outcome is
        recorded as unknown."""
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
    """Whether a node may execute twice without harm. An agent node prevents a second run by its
    stored run id."""
    match node.config:
        case HttpRequestConfig(idempotent=idempotent) if node.mode is NodeMode.NORMAL:
            return idempotent
        case McpServerNodeConfig(idempotent=idempotent) if node.mode is NodeMode.NORMAL:
            return idempotent
        case _:
            return True
