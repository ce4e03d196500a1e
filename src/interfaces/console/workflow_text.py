"""Workflows as text for editing: YAML or JSON, and back."""

import asyncio
from typing import cast

from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.workflows.definition_json import NAME_KEYS
from domain.workflows.graph import INPUT_HANDLE, Edge, NodeDefinition, NodeMode, Workflow, WorkflowDefinition
from interfaces.definition_text import MAX_YAML, DefinitionTextError, read_definition, written
from interfaces.http.bodies import decoded_body
from interfaces.http.workflows.schemas import WorkflowBody


async def definition_of(text: str) -> WorkflowDefinition:
    """The unchecked definition. Raises INVALID with the position."""
    is_json = text.lstrip().startswith("{")
    if not is_json and len(text) > MAX_YAML:
        raise _wrong(f"is longer than {MAX_YAML // 1024} KiB of YAML; write it as JSON.")
    try:
        # In a thread: parsing YAML is slow.
        document = await asyncio.to_thread(read_definition, text, is_json=is_json, texts=NAME_KEYS, aliases=False)
    except DefinitionTextError as error:
        raise _wrong(str(error)) from error
    return decoded_body(WorkflowBody, document).to_definition()


def source_of(text: str) -> str | None:
    """What is stored of a text that a definition was read from: YAML, with its comments; of JSON nothing."""
    return None if text.lstrip().startswith("{") else text.replace("\r\n", "\n")


def text_of_version(workflow: Workflow) -> str:
    """As it was saved, else as `text_of`."""
    return workflow.text or text_of(workflow.definition)


def text_of(definition: WorkflowDefinition) -> str:
    """YAML without default values. A large definition takes a second."""
    nodes: list[JsonValue] = [_node(node) for node in definition.nodes]
    edges: list[JsonValue] = [_edge(edge) for edge in definition.edges]
    return written({"name": definition.name, "nodes": nodes, "edges": edges})


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


def _wrong(message: str) -> Exception:
    return invalid("definition_invalid", "The definition cannot be read.", Violation(path="", message=message))
