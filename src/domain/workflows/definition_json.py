"""Workflow definitions as JSON: the one format for input, storage and views."""

from collections.abc import Mapping
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.workflows.graph import Edge, NodeDefinition, WorkflowDefinition

NAME_KEYS = ("id", "name", "team", "source", "target", "source_handle", "target_handle", "handle", "otherwise")
"""Keys with names as values: YAML must not read `true`, a handle of a condition, as a boolean."""


def graph_to_json(definition: WorkflowDefinition) -> JsonObject:
    """`{nodes, edges}`, with every field of each."""
    nodes: list[JsonValue] = [node_to_json(node) for node in definition.nodes]
    edges: list[JsonValue] = [edge_to_json(edge) for edge in definition.edges]
    return {"nodes": nodes, "edges": edges}


def node_to_json(node: NodeDefinition) -> JsonObject:
    return {"id": node.id, "kind": node.kind, "mode": node.mode, "config": node.config}


def edge_to_json(edge: Edge) -> JsonObject:
    return {
        "source": edge.source,
        "source_handle": edge.source_handle,
        "target": edge.target,
        "target_handle": edge.target_handle,
    }


def definition_from_json(name: str, graph: JsonValue, *, team: str | None = None) -> WorkflowDefinition:
    """The inverse of `graph_to_json`."""
    parts = cast("Mapping[str, list[Mapping[str, str]]]", graph)
    return WorkflowDefinition(
        name=name,
        nodes=tuple(
            NodeDefinition(
                id=node["id"], kind=node["kind"], mode=node["mode"], config=cast("JsonObject", node["config"])
            )
            for node in parts["nodes"]
        ),
        edges=tuple(
            Edge(
                source=edge["source"],
                source_handle=edge["source_handle"],
                target=edge["target"],
                target_handle=edge["target_handle"],
            )
            for edge in parts["edges"]
        ),
        team=team,
    )
