"""Decides the next steps of a workflow run from the stored state of its nodes alone.

Nothing is remembered here: after a crash the same rows give the same decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from domain.json_value import JsonObject, JsonValue
from domain.workflows.execution import (
    NODE_TIMEOUT,
    TOOL_UNAVAILABLE,
    TOOLS_NOT_READY,
    UPSTREAM_FAILED,
    NodeError,
    NodeRun,
    NodeStatus,
)
from domain.workflows.graph import AgentNodeConfig, JoinStrategy, NodeKind, NodeMode
from domain.workflows.plan import Incoming, Plan, PlannedNode

MAX_PARALLEL = 16
"""Most nodes of a run that execute at the same time. Nodes that wait for agents or people are not
counted."""


class Outlook(StrEnum):
    """The state of the run after a decision."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDecision:
    """The next steps. `start` are nodes to execute; `changed` are nodes with a new state. `wake_at`
    is when to decide again even without an event. `failed_node` is the node that failed the run,
    with its `error`."""

    start: tuple[NodeRun, ...] = ()
    changed: tuple[NodeRun, ...] = ()
    outlook: Outlook = Outlook.RUNNING
    wake_at: datetime | None = None
    output: JsonValue = None
    error: NodeError | None = None
    failed_node: str | None = None


def decide(plan: Plan, stored: Mapping[str, NodeRun], *, now: datetime) -> WorkflowDecision:
    """The decision for the stored nodes; absent ones are pending."""
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
        return WorkflowDecision(changed=rest, outlook=Outlook.FAILED, error=origin.error, failed_node=origin.node_id)
    if _is_complete(plan, nodes):
        return WorkflowDecision(changed=rest, outlook=Outlook.COMPLETED, output=_output(plan, nodes))
    # A node that is already due waits for capacity, not for time.
    due = [run.due_at for run in nodes.values() if run.due_at is not None and run.due_at > now]
    busy = any(run.status is NodeStatus.RUNNING for run in nodes.values())
    own_time = any(run.due_at is not None and run.status is NodeStatus.PENDING for run in nodes.values())
    waiting = any(run.status is NodeStatus.WAITING for run in nodes.values()) and not busy and not own_time
    return WorkflowDecision(
        start=start,
        changed=rest,
        outlook=Outlook.WAITING if waiting else Outlook.RUNNING,
        wake_at=min(due, default=None),
    )


def abandoned(plan: Plan, nodes: Mapping[str, NodeRun], *, now: datetime) -> dict[str, NodeRun]:
    """The nodes of a cancelled run: unfinished ones are cancelled."""
    return {
        node_id: run if run.status.is_final else run.cancelled(at=now, node=plan.by_id[node_id])
        for node_id, run in nodes.items()
    }


class _EdgeState(StrEnum):
    OPEN = "open"
    TAKEN = "taken"
    NOT_TAKEN = "not_taken"
    FAILED = "failed"


class _JoinResult(StrEnum):
    WAIT = "wait"
    GO = "go"
    SKIP = "skip"
    FAIL = "fail"


class _Advance:
    """Settles nodes in topological order. A node that starts may cancel others, which may settle
    more nodes, so the pass is repeated until nothing changes."""

    def __init__(self, plan: Plan, nodes: dict[str, NodeRun], now: datetime) -> None:
        self._plan = plan
        self._nodes = nodes
        self._now = now
        self.started: set[str] = set()
        running = [node for node in plan.nodes if nodes[node.id].status is NodeStatus.RUNNING]
        self._working = sum(_works(node) for node in running)

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
            detail = "No answer arrived in time."
            self._nodes[node.id] = run.failed(NodeError(code=NODE_TIMEOUT, detail=detail), at=self._now)
        if run.status is not NodeStatus.PENDING:
            return
        if run.attempt > 0:
            if self._is_due(run):
                self._start(node, run)
            return
        match _join(node, self._nodes):
            case _JoinResult.WAIT:
                return
            case _JoinResult.SKIP:
                self._nodes[node.id] = run.skipped(None, at=self._now)
            case _JoinResult.FAIL:
                error = NodeError(code=UPSTREAM_FAILED, detail="A node before this one failed.")
                self._nodes[node.id] = run.skipped(error, at=self._now)
            case _JoinResult.GO:
                self._go(node, run)

    def _go(self, node: PlannedNode, run: NodeRun) -> None:
        tools = [self._nodes[tool] for tool in node.connected_tool_node_ids]
        lost = [tool.node_id for tool in tools if tool.status.is_final and tool.status is not NodeStatus.READY]
        if lost:
            detail = f"These tools of the node are unavailable: {', '.join(lost)}."
            self._nodes[node.id] = run.failed(NodeError(code=TOOL_UNAVAILABLE, detail=detail), at=self._now)
            return
        awaited = [tool.node_id for tool in tools if tool.status is not NodeStatus.READY]
        if not awaited:
            self._start(node, run)
        elif run.due_at is None:
            timeout_s = node.config.tools_timeout_s if isinstance(node.config, AgentNodeConfig) else 0.0
            self._nodes[node.id] = replace(run, due_at=self._now + timedelta(seconds=timeout_s))
        elif self._is_due(run):
            detail = f"These tools of the node were not ready in time: {', '.join(awaited)}."
            self._nodes[node.id] = run.failed(NodeError(code=TOOLS_NOT_READY, detail=detail), at=self._now)

    def _start(self, node: PlannedNode, run: NodeRun) -> None:
        if not self._has_room(node):
            return
        self._nodes[node.id] = run.started(at=self._now)
        self._working += _works(node)
        self.started.add(node.id)
        if node.join is JoinStrategy.FIRST:
            self._cancel(_needed_only_by(self._plan, self._nodes, node))

    def _has_room(self, node: PlannedNode) -> bool:
        """Whether one more node may execute. A node that must wait for capacity stays pending."""
        return not _works(node) or self._working < MAX_PARALLEL

    def _abandon(self) -> None:
        """The run ends: unfinished nodes are cancelled."""
        self._cancel([node_id for node_id, run in self._nodes.items() if not run.status.is_final])

    def _cancel(self, node_ids: list[str]) -> None:
        for node_id in node_ids:
            run, node = self._nodes[node_id], self._plan.by_id[node_id]
            self._working -= run.status is NodeStatus.RUNNING and _works(node)
            self._nodes[node_id] = run.cancelled(at=self._now, node=node)
            self.started.discard(node_id)

    def _is_due(self, run: NodeRun) -> bool:
        return run.due_at is not None and run.due_at <= self._now


def _works(node: PlannedNode) -> bool:
    """Whether the worker itself is busy while the node executes."""
    return node.kind not in (NodeKind.AGENT, NodeKind.HUMAN_INPUT)


def _join(node: PlannedNode, nodes: Mapping[str, NodeRun]) -> _JoinResult:
    if not node.incoming:
        return _JoinResult.GO
    states = {_edge_state(edge, nodes) for edge in node.incoming}
    if node.join is JoinStrategy.ALL:
        if _EdgeState.FAILED in states:
            return _JoinResult.FAIL
        if _EdgeState.OPEN in states:
            return _JoinResult.WAIT
        return _JoinResult.GO if _EdgeState.TAKEN in states else _JoinResult.SKIP
    if _EdgeState.TAKEN in states:
        return _JoinResult.GO
    if _EdgeState.OPEN in states:
        return _JoinResult.WAIT
    return _JoinResult.FAIL if _EdgeState.FAILED in states else _JoinResult.SKIP


def _edge_state(edge: Incoming, nodes: Mapping[str, NodeRun]) -> _EdgeState:
    source = nodes[edge.source]
    match source.status:
        case NodeStatus.SUCCEEDED:
            return _EdgeState.TAKEN if source.handle in (None, edge.handle) else _EdgeState.NOT_TAKEN
        case NodeStatus.FAILED:
            return _EdgeState.FAILED
        case NodeStatus.SKIPPED:
            return _EdgeState.NOT_TAKEN if source.error is None else _EdgeState.FAILED
        case NodeStatus.CANCELLED:
            return _EdgeState.NOT_TAKEN
        case _:
            return _EdgeState.OPEN


def _needed_only_by(plan: Plan, nodes: Mapping[str, NodeRun], node: PlannedNode) -> list[str]:
    """Unfinished nodes with no path except to `node`."""
    found: dict[str, None] = {}
    for other in reversed(plan.nodes):
        if other.id not in node.upstream or nodes[other.id].status.is_final:
            continue
        if all(follower == node.id or follower in found for follower in plan.followers[other.id]):
            found[other.id] = None
    return list(found)


def _failed_sink(plan: Plan, nodes: Mapping[str, NodeRun]) -> str | None:
    """The sink that a failure has reached, if any. A failure propagates along edges until a join
    absorbs it."""
    for node in plan.nodes:
        run = nodes[node.id]
        if node.is_sink and (run.status is NodeStatus.FAILED or (run.status is NodeStatus.SKIPPED and run.error)):
            return node.id
    return None


def _is_complete(plan: Plan, nodes: Mapping[str, NodeRun]) -> bool:
    """Whether all nodes except tools are final. Tools do not delay completion."""
    return all(nodes[node.id].status.is_final for node in plan.nodes if node.mode is NodeMode.NORMAL)


def _origin_of_failure(plan: Plan, nodes: Mapping[str, NodeRun], node_id: str) -> str:
    """The failed node that caused the failure of `node_id`."""
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
    """The output of the run: that of its only sink, or the outputs of the reached sinks by
    node id."""
    sinks = [node.id for node in plan.nodes if node.is_sink]
    if len(sinks) == 1:
        return nodes[sinks[0]].output
    reached: JsonObject = {
        node_id: nodes[node_id].output for node_id in sinks if nodes[node_id].status is NodeStatus.SUCCEEDED
    }
    return reached
