"""Workflows and the results of their checks as JSON."""

from typing import Annotated, TypedDict

from domain.threads.message_json import timestamp
from domain.workflows.compiler import compile_workflow
from domain.workflows.graph import JoinStrategy, NodeKind, NodeMode, Workflow
from domain.workflows.plan import Plan
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, UpdatedAt, Version


class NodeView(TypedDict):
    """A node as written."""

    id: Annotated[str, "Id of the node, unique in the workflow."]
    kind: Annotated[
        str, "entrypoint, agent, http_request, mcp_server, native_tool, transform, condition or human_input."
    ]
    mode: Annotated[str, "normal or tool."]
    config: Annotated[dict[str, object], "Configuration; its fields depend on the kind."]


class EdgeView(TypedDict):
    """An edge as written; an empty source handle means the only handle of the source."""

    source: Annotated[str, "Id of the node that it comes from."]
    source_handle: Annotated[
        str, "Output handle of the source; required for nodes with several, empty for the only one."
    ]
    target: Annotated[str, "Id of the node that it leads to."]
    target_handle: Annotated[
        str, "Input handle of the target. `tools` wires a tool to an agent; the default is `input`."
    ]


class PlannedNodeView(TypedDict):
    """A node as executed: after the nodes in `after`. `connected_tool_node_ids` are exactly an
    agent's tools."""

    id: Annotated[str, "Id of the node."]
    kind: Annotated[NodeKind, "Kind of the node."]
    mode: Annotated[NodeMode, "Mode of the node."]
    join: Annotated[JoinStrategy, "When it starts, with several incoming edges."]
    after: Annotated[list[str], "Ids of the nodes that it comes after."]
    connected_tool_node_ids: Annotated[list[str], "Ids of the tool nodes of an agent node: exactly its tools."]


class FaultView(TypedDict):
    """One fault: a stable code, a sentence, the affected nodes, and its path in the body."""

    code: Annotated[str, "Code of the fault."]
    message: Annotated[str, "The fault as a sentence."]
    node_ids: Annotated[list[str], "Ids of the affected nodes."]
    path: Annotated[str, "Path of the fault in the body."]


class WorkflowView(TypedDict):
    """A workflow at one version. `plan` lists its nodes in an executable order, null if this
    version of Dragoman no longer accepts the workflow."""

    id: Annotated[str, "Id of the workflow."]
    name: Annotated[str, "Unique in the organization."]
    nodes: Annotated[list[NodeView], "Nodes of the graph."]
    edges: Annotated[list[EdgeView], "Edges of the graph."]
    plan: Annotated[
        list[PlannedNodeView] | None,
        "Its nodes in an executable order; null if this version of Dragoman no longer accepts the workflow.",
    ]
    text: Annotated[
        str | None,
        "The YAML that this version was saved with, with its comments; it has the same name, nodes and edges. Null if there "
        "is none, and in lists.",
    ]
    team: Annotated[
        str | None,
        "Name of the group that it belongs to: others neither see nor run it. Null: it belongs to the organization.",
    ]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class SavedWorkflowView(WorkflowView):
    """A saved workflow; `warnings` name valid but unusual parts."""

    warnings: Annotated[list[FaultView], "Valid but unusual parts."]


class ValidationView(TypedDict):
    """The result of the checks. `plan` is null exactly if there are errors."""

    valid: Annotated[bool, "Whether there are no errors."]
    errors: Annotated[list[FaultView], "Faults that prevent saving."]
    warnings: Annotated[list[FaultView], "Valid but unusual parts."]
    plan: Annotated[list[PlannedNodeView] | None, "The nodes in an executable order; null if there are errors."]


class WorkflowPage(TypedDict):
    """A page of workflows; `next_cursor` is null on the last one."""

    data: Items[WorkflowView]
    next_cursor: NextCursor


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
        "text": workflow.text,
        "team": definition.team,
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
            "kind": node.kind,
            "mode": node.mode,
            "join": node.join,
            "after": list(node.predecessors),
            "connected_tool_node_ids": list(node.connected_tool_node_ids),
        }
        for node in plan.nodes
    ]
