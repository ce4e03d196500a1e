"""A workflow run as a state machine: from what is stored of its nodes follows what is to be done, and nothing else.

Nothing here remembers anything: after a crash the same rows give the same decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.ids import RunId
from domain.json_value import JsonObject, JsonValue
from domain.workflows.graph import AgentConfig, HttpRequestConfig, JoinStrategy, McpServerConfig, NodeMode
from domain.workflows.plan import Incoming, Plan, PlannedNode


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
    too long for a person. `run_id` is the agent's run, `asked` what a person is asked.
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

    def waiting(self, *, due_at: datetime | None, asked: JsonValue = None) -> "NodeRun":
        """Nobody works on it: a person is asked."""
        self._require(NodeStatus.RUNNING)
        return replace(self, status=NodeStatus.WAITING, due_at=due_at, asked=asked)

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

    def cancelled(self, *, at: datetime) -> "NodeRun":
        """Not needed any more."""
        self._require(NodeStatus.PENDING, NodeStatus.RUNNING, NodeStatus.WAITING)
        return replace(self, status=NodeStatus.CANCELLED, due_at=None, finished_at=at)

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


class Standing(StrEnum):
    """Where the whole stands."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done now. `start` are nodes to execute; `changed` are others whose state is settled by this.
    `wake_at` is when to decide again even if nothing happens. `error` names the node that failed the run."""

    start: tuple[NodeRun, ...] = ()
    changed: tuple[NodeRun, ...] = ()
    standing: Standing = Standing.RUNNING
    wake_at: datetime | None = None
    output: JsonValue = None
    error: NodeError | None = None
    failed_node: str | None = None


def decide(plan: Plan, stored: Mapping[str, NodeRun], *, now: datetime) -> Decision:
    """What follows from the nodes as they are stored; absent ones are pending."""
    nodes = {node.id: stored.get(node.id) or NodeRun(node_id=node.id) for node in plan.nodes}
    advance = _Advance(plan, nodes, now)
    advance.settle()
    before = {node.id: stored.get(node.id) or NodeRun(node_id=node.id) for node in plan.nodes}
    changed = {node_id: run for node_id, run in nodes.items() if run != before[node_id]}
    start = tuple(run for node_id, run in changed.items() if node_id in advance.started)
    rest = tuple(run for node_id, run in changed.items() if node_id not in advance.started)
    failed = _failed_sink(plan, nodes)
    if failed is not None:
        origin = nodes[_origin_of_failure(plan, nodes, failed)]
        return Decision(changed=rest, standing=Standing.FAILED, error=origin.error, failed_node=origin.node_id)
    if _is_complete(plan, nodes):
        return Decision(changed=rest, standing=Standing.COMPLETED, output=_output(plan, nodes))
    due = [run.due_at for run in nodes.values() if run.due_at is not None and not run.status.is_final]
    busy = any(run.status is NodeStatus.RUNNING for run in nodes.values())
    own_time = any(run.due_at is not None and run.status is NodeStatus.PENDING for run in nodes.values())
    waiting = any(run.status is NodeStatus.WAITING for run in nodes.values()) and not busy and not own_time
    return Decision(
        start=start,
        changed=rest,
        standing=Standing.WAITING if waiting else Standing.RUNNING,
        wake_at=min(due, default=None),
    )


class _Way(StrEnum):
    """What is known of an edge."""

    OPEN = "open"
    TAKEN = "taken"
    NOT_TAKEN = "not_taken"
    FAILED = "failed"


class _Verdict(StrEnum):
    """What a join says."""

    WAIT = "wait"
    GO = "go"
    SKIP = "skip"
    FAIL = "fail"


class _Advance:
    """Settles what can be settled, node by node, each after what comes before it. A node that begins may cancel others
    behind it, which can settle more: so again, until nothing changes."""

    def __init__(self, plan: Plan, nodes: dict[str, NodeRun], now: datetime) -> None:
        self._plan = plan
        self._nodes = nodes
        self._now = now
        self.started: set[str] = set()

    def settle(self) -> None:
        before = None
        while before != self._nodes:
            before = dict(self._nodes)
            for node in self._plan.nodes:
                self._settle_node(node)
        if _failed_sink(self._plan, self._nodes) is not None or _is_complete(self._plan, self._nodes):
            self._abandon()

    def _settle_node(self, node: PlannedNode) -> None:
        run = self._nodes[node.id]
        if run.status is NodeStatus.WAITING and self._is_due(run):
            detail = "Nobody answered in time."
            self._nodes[node.id] = run.failed(NodeError(code=NODE_TIMEOUT, detail=detail), at=self._now)
        if run.status is not NodeStatus.PENDING:
            return
        if run.attempt > 0:
            if self._is_due(run):
                self._start(node, run)
            return
        match _verdict(node, self._nodes):
            case _Verdict.WAIT:
                return
            case _Verdict.SKIP:
                self._nodes[node.id] = run.skipped(None, at=self._now)
            case _Verdict.FAIL:
                error = NodeError(code=UPSTREAM_FAILED, detail="A node before this one failed.")
                self._nodes[node.id] = run.skipped(error, at=self._now)
            case _Verdict.GO:
                self._go(node, run)

    def _go(self, node: PlannedNode, run: NodeRun) -> None:
        tools = [self._nodes[tool] for tool in node.connected_tool_node_ids]
        lost = [tool.node_id for tool in tools if tool.status.is_final and tool.status is not NodeStatus.READY]
        if lost:
            detail = f"These tools of the node are not to be had: {', '.join(lost)}."
            self._nodes[node.id] = run.failed(NodeError(code=TOOL_UNAVAILABLE, detail=detail), at=self._now)
            return
        awaited = [tool.node_id for tool in tools if tool.status is not NodeStatus.READY]
        if not awaited:
            self._start(node, run)
        elif run.due_at is None:
            patience = node.config.tools_timeout_s if isinstance(node.config, AgentConfig) else 0.0
            self._nodes[node.id] = replace(run, due_at=self._now + timedelta(seconds=patience))
        elif self._is_due(run):
            detail = f"These tools of the node were not ready in time: {', '.join(awaited)}."
            self._nodes[node.id] = run.failed(NodeError(code=TOOLS_NOT_READY, detail=detail), at=self._now)

    def _start(self, node: PlannedNode, run: NodeRun) -> None:
        self._nodes[node.id] = run.started(at=self._now)
        self.started.add(node.id)
        if node.join is JoinStrategy.FIRST:
            self._cancel(_needed_only_by(self._plan, self._nodes, node))

    def _abandon(self) -> None:
        """The run ends: what is not finished is not finished any more."""
        self._cancel([node_id for node_id, run in self._nodes.items() if not run.status.is_final])

    def _cancel(self, node_ids: list[str]) -> None:
        for node_id in node_ids:
            self._nodes[node_id] = self._nodes[node_id].cancelled(at=self._now)
            self.started.discard(node_id)

    def _is_due(self, run: NodeRun) -> bool:
        return run.due_at is not None and run.due_at <= self._now


def _verdict(node: PlannedNode, nodes: Mapping[str, NodeRun]) -> _Verdict:
    if not node.incoming:
        return _Verdict.GO
    ways = {_way(edge, nodes) for edge in node.incoming}
    if node.join is JoinStrategy.ALL:
        if _Way.FAILED in ways:
            return _Verdict.FAIL
        if _Way.OPEN in ways:
            return _Verdict.WAIT
        return _Verdict.GO if _Way.TAKEN in ways else _Verdict.SKIP
    if _Way.TAKEN in ways:
        return _Verdict.GO
    if _Way.OPEN in ways:
        return _Verdict.WAIT
    return _Verdict.FAIL if _Way.FAILED in ways else _Verdict.SKIP


def _way(edge: Incoming, nodes: Mapping[str, NodeRun]) -> _Way:
    source = nodes[edge.source]
    match source.status:
        case NodeStatus.SUCCEEDED:
            return _Way.TAKEN if source.handle in (None, edge.handle) else _Way.NOT_TAKEN
        case NodeStatus.FAILED:
            return _Way.FAILED
        case NodeStatus.SKIPPED:
            return _Way.NOT_TAKEN if source.error is None else _Way.FAILED
        case NodeStatus.CANCELLED:
            return _Way.NOT_TAKEN
        case _:
            return _Way.OPEN


def _needed_only_by(plan: Plan, nodes: Mapping[str, NodeRun], node: PlannedNode) -> list[str]:
    """Unfinished nodes from which every way leads to `node`."""
    found: dict[str, None] = {}
    for other in reversed(plan.nodes):
        if other.id not in node.upstream or nodes[other.id].status.is_final:
            continue
        if all(follower == node.id or follower in found for follower in plan.followers[other.id]):
            found[other.id] = None
    return list(found)


def _failed_sink(plan: Plan, nodes: Mapping[str, NodeRun]) -> str | None:
    """A failure travels along the edges until a join absorbs it; one that has come to an end of the graph is final."""
    for node in plan.nodes:
        run = nodes[node.id]
        if node.is_sink and (run.status is NodeStatus.FAILED or (run.status is NodeStatus.SKIPPED and run.error)):
            return node.id
    return None


def _is_complete(plan: Plan, nodes: Mapping[str, NodeRun]) -> bool:
    """Tools are there for agents, and none is left."""
    return all(nodes[node.id].status.is_final for node in plan.nodes if node.mode is NodeMode.NORMAL)


def _origin_of_failure(plan: Plan, nodes: Mapping[str, NodeRun], node_id: str) -> str:
    """The node whose own failure came to `node_id`."""
    while nodes[node_id].status is not NodeStatus.FAILED:
        sources = plan.by_id[node_id].predecessors
        node_id = next(
            source
            for source in sources
            if nodes[source].status is NodeStatus.FAILED
            or (nodes[source].status is NodeStatus.SKIPPED and nodes[source].error is not None)
        )
    return node_id


def _output(plan: Plan, nodes: Mapping[str, NodeRun]) -> JsonValue:
    """What the ends of the graph put out: of one its output, of several those that were reached, by node id."""
    sinks = [node.id for node in plan.nodes if node.is_sink]
    if len(sinks) == 1:
        return nodes[sinks[0]].output
    reached: JsonObject = {
        node_id: nodes[node_id].output for node_id in sinks if nodes[node_id].status is NodeStatus.SUCCEEDED
    }
    return reached
