"""Workflows as text for editing."""

from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.workflows.graph import INPUT_HANDLE, Edge, NodeDefinition, NodeMode, Workflow, WorkflowDefinition
from interfaces.definition_text import written


def text_of_version(workflow: Workflow) -> str:
    """As it was saved, else as `text_of`."""
    return workflow.text or text_of(workflow.definition)


def text_of(definition: WorkflowDefinition) -> str:
    """YAML without default values. A large definition takes a second."""
    nodes: list[JsonValue] = [_node(node) for node in definition.nodes]
    edges: list[JsonValue] = [_edge(edge) for edge in definition.edges]
    team: JsonObject = {} if definition.team is None else {"team": definition.team}
    return written({"name": definition.name, **team, "nodes": nodes, "edges": edges})


def _node(node: NodeDefinition) -> JsonObject:
    shown: dict[str, JsonValue] = {"id": node.id, "kind": node.kind}
    if node.mode != NodeMode.NORMAL.value:
        shown["mode"] = node.mode
    if node.config:
        shown["config"] = cast(JsonValue, node.config)
    return shown


def _edge(edge: Edge) -> JsonObject:
    shown: dict[str, JsonValue] = {"source": edge.source}
    if edge.source_handle:
        shown["source_handle"] = edge.source_handle
    shown["target"] = edge.target
    if edge.target_handle != INPUT_HANDLE:
        shown["target_handle"] = edge.target_handle
    return shown
