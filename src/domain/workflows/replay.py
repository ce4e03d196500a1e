"""What a new run takes over from an earlier one, to execute again from a node on, or that node
alone."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from domain.errors import Violation, conflict, invalid
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import NodeMode
from domain.workflows.plan import Plan, PlannedNode


def replayed_from(plan: Plan, earlier: Mapping[str, NodeRun], node_id: str) -> dict[str, NodeRun]:
    """The states of nodes at the start of the new run.
    - Nodes after `node_id` are executed again, and so are those that did not end well, with all
      after them.
    - Tools become ready again.

    Raises INVALID `node_not_a_step`.
    """
    _step(plan, node_id)
    kept: dict[str, NodeRun] = {}
    for node in plan.nodes:
        again = node.id == node_id or node_id in node.upstream or node.mode is NodeMode.TOOL
        found = _well_ended(earlier.get(node.id))
        if not again and found is not None and all(before in kept for before in node.predecessors):
            kept[node.id] = found
    return kept


def alone(plan: Plan, earlier: Mapping[str, NodeRun], node_id: str, *, at: datetime) -> dict[str, NodeRun]:
    """The states of nodes at the start of a run that executes `node_id` and its tools alone: nodes
    before it have the outputs of the earlier run, all others are cancelled.

    Raises INVALID `node_not_a_step`, CONFLICT `node_input_missing` if no node before it has put
    anything out.
    """
    step = _step(plan, node_id)
    kept = {
        before: replace(found, handle=None)  # its way to the node is taken
        for before in step.upstream
        if (found := _well_ended(earlier.get(before))) is not None and plan.by_id[before].mode is NodeMode.NORMAL
    }
    missing = [before for before in step.predecessors if before not in kept]
    if missing or (step.predecessors and all(kept[each].status is NodeStatus.SKIPPED for each in step.predecessors)):
        named = ", ".join(missing or step.predecessors)
        raise conflict(
            "node_input_missing", f"In this run no output is there of what comes before {node_id!r}: {named}."
        )
    executed = {node_id, *_tools_of(plan, step)}
    others = {
        node.id: NodeRun(node_id=node.id, status=NodeStatus.CANCELLED, finished_at=at)
        for node in plan.nodes
        if node.id not in executed and node.id not in kept
    }
    return kept | others


def _well_ended(run: NodeRun | None) -> NodeRun | None:
    """The node as one that the new run did not execute itself; None if it must be executed."""
    if run is None or run.error is not None or run.status not in (NodeStatus.SUCCEEDED, NodeStatus.SKIPPED):
        return None
    return NodeRun(node_id=run.node_id, status=run.status, output=run.output, handle=run.handle)


def _step(plan: Plan, node_id: str) -> PlannedNode:
    node = plan.by_id.get(node_id)
    if node is None or node.mode is NodeMode.TOOL:
        fault = Violation(path="node_id", message=f"there is no step {node_id!r} in the newest version")
        raise invalid("node_not_a_step", "The node cannot be executed again.", fault)
    return node


def _tools_of(plan: Plan, node: PlannedNode) -> frozenset[str]:
    """The tools of a node, and the tools of agents that are its tools."""
    direct = frozenset(node.connected_tool_node_ids)
    return direct.union(*(_tools_of(plan, plan.by_id[tool]) for tool in direct))
