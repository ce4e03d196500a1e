"""Workflows, and what is found out about them, as JSON."""

from typing import TypedDict

from domain.threads.message_json import timestamp
from domain.workflows.compiler import compile_workflow
from domain.workflows.graph import Workflow
from domain.workflows.plan import Plan


class NodeView(TypedDict):
    """A node as it was written."""

    id: str
    kind: str
    mode: str
    config: dict[str, object]


class EdgeView(TypedDict):
    """An edge as it was written; an empty source handle stands for the source's only one."""

    source: str
    source_handle: str
    target: str
    target_handle: str


class PlannedNodeView(TypedDict):
    """A node as it is executed: after the nodes of `after`. `connected_tool_node_ids` are an agent's tools, exactly
    these."""

    id: str
    kind: str
    mode: str
    join: str
    after: list[str]
    connected_tool_node_ids: list[str]


class FaultView(TypedDict):
    """One fault: a stable code, a sentence, the nodes it is about, and its path in the body."""

    code: str
    message: str
    node_ids: list[str]
    path: str


class WorkflowView(TypedDict):
    """A workflow at one version. `plan` has its nodes in an order in which they may be executed; null if this version
    of Dragoman does not take it any more."""

    id: str
    name: str
    nodes: list[NodeView]
    edges: list[EdgeView]
    plan: list[PlannedNodeView] | None
    version: int
    created_at: str
    updated_at: str


class SavedWorkflowView(WorkflowView):
    """A workflow as it was saved; `warnings` say what is allowed and odd."""

    warnings: list[FaultView]


class ValidationView(TypedDict):
    """What saving the workflow would say. `plan` is null exactly if there are errors."""

    valid: bool
    errors: list[FaultView]
    warnings: list[FaultView]
    plan: list[PlannedNodeView] | None


class WorkflowPage(TypedDict):
    """A page of workflows; `next_cursor` is null on the last one."""

    data: list[WorkflowView]
    next_cursor: str | None


def workflow_view(workflow: Workflow) -> WorkflowView:
    """A workflow as JSON."""
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
