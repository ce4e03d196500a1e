"""Workflows and the results of their checks as JSON."""

from typing import TypedDict

from domain.threads.message_json import timestamp
from domain.workflows.compiler import compile_workflow
from domain.workflows.graph import Workflow
from domain.workflows.plan import Plan


class NodeView(TypedDict):
    """A node as written."""

    id: str
    kind: str
    mode: str
    config: dict[str, object]


class EdgeView(TypedDict):
    """An edge as written; an empty source handle means the only handle of the source."""

    source: str
    source_handle: str
    target: str
    target_handle: str


class PlannedNodeView(TypedDict):
    """A node as executed: after the nodes in `after`. `connected_tool_node_ids` are exactly an
    agent's tools."""

    id: str
    kind: str
    mode: str
    join: str
    after: list[str]
    connected_tool_node_ids: list[str]


class FaultView(TypedDict):
    """One fault: a stable code, a sentence, the affected nodes, and its path in the body."""

    code: str
    message: str
    node_ids: list[str]
    path: str


class WorkflowView(TypedDict):
    """A workflow at one version. `plan` lists its nodes in an executable order, null if this
    version of Dragoman no longer accepts the workflow."""

    id: str
    name: str
    nodes: list[NodeView]
    edges: list[EdgeView]
    plan: list[PlannedNodeView] | None
    version: int
    created_at: str
    updated_at: str


class SavedWorkflowView(WorkflowView):
    """A saved workflow; `warnings` name valid but unusual parts."""

    warnings: list[FaultView]


class ValidationView(TypedDict):
    """The result of the checks. `plan` is null exactly if there are errors."""

    valid: bool
    errors: list[FaultView]
    warnings: list[FaultView]
    plan: list[PlannedNodeView] | None


class WorkflowPage(TypedDict):
    """A page of workflows; `next_cursor` is null on the last one."""

    data: list[WorkflowView]
    next_cursor: str | None


def workflow_view(workflow: Workflow) -> WorkflowView:
    definition = workflow.definition
    return {
        "id": workflow.id,
        "name": definition.name,
        "nodes": [
            {"id": node.id, "kind": node.kind, "mode": node.mode, "config": {**node.config}}
            for node in definition.nodes
        ],
        "edges": [
            {
                "source": edge.source,
                "source_handle": edge.source_handle,
                "target": edge.target,
                "target_handle": edge.target_handle,
            }
            for edge in definition.edges
        ],
        "plan": plan_view(compile_workflow(definition).plan),
        "version": workflow.version,
        "created_at": timestamp(workflow.created_at),
        "updated_at": timestamp(workflow.updated_at),
    }


def plan_view(plan: Plan | None) -> list[PlannedNodeView] | None:
    """A plan as JSON; null for what cannot be executed."""
    if plan is None:
        return None
    return [
        {
            "id": node.id,
            "kind": node.kind.value,
            "mode": node.mode.value,
            "join": node.join.value,
            "after": list(node.predecessors),
            "connected_tool_node_ids": list(node.connected_tool_node_ids),
        }
        for node in plan.nodes
    ]
