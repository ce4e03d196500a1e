"""Bodies of the workflow routes. Kinds, modes and configurations are untyped here: the compiler
reports all their faults at once."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.workflows.graph import MAX_EDGES, MAX_NODES, Edge, NodeDefinition, WorkflowDefinition
from interfaces.definition_text import MAX_YAML
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.workflows.views import EdgeView, NodeView, WorkflowView

_MAX_ID = 200
Identifier = Annotated[str, Field(max_length=_MAX_ID)]
_NODES: list[JsonObject] = [
    {"id": "start", "kind": "entrypoint"},
    {"id": "answer", "kind": "agent", "config": {"agent": "guide", "input": "{{start.question}}"}},
    {"id": "files", "kind": "mcp_server", "mode": "tool", "config": {"server": "files"}},
]
_EDGES: list[JsonObject] = [
    {"source": "start", "target": "answer"},
    {"source": "files", "target": "answer", "target_handle": "tools"},
]
_EXAMPLE = cast("JsonObject", {"name": "answers", "nodes": _NODES, "edges": _EDGES})


class NodeBody(Body):
    """A node; `config` depends on its kind."""

    shown_as: ClassVar[type] = NodeView

    id: Identifier
    kind: Identifier
    mode: Identifier = "normal"
    config: dict[str, object] = Field(default_factory=dict)


class EdgeBody(Body):
    """An edge. The target handle `tools` wires a tool to an agent."""

    shown_as: ClassVar[type] = EdgeView

    source: Identifier
    source_handle: Identifier | None = None
    target: Identifier
    target_handle: Identifier | None = None


Text = Annotated[str, Field(min_length=1, max_length=MAX_YAML)]
Nodes = Annotated[tuple[NodeBody, ...], Field(strict=False, max_length=MAX_NODES)]
Edges = Annotated[tuple[EdgeBody, ...], Field(strict=False, max_length=MAX_EDGES)]


class WorkflowBody(Body):
    """A workflow."""

    examples: ClassVar[tuple[JsonObject, ...]] = (_EXAMPLE,)

    shown_as: ClassVar[type] = WorkflowView

    name: Name
    nodes: Nodes
    edges: Edges = ()
    text: Text | None = None

    def to_definition(self) -> WorkflowDefinition:
        return WorkflowDefinition(name=self.name, nodes=_nodes(self.nodes), edges=_edges(self.edges))


class UpdateWorkflowBody(Patch):
    """Changes to a workflow; each creates a new version. Nodes and edges are replaced entirely; `text` replaces all parts."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "answers-2"},)

    shown_as: ClassVar[type] = WorkflowView

    name: Name | None = None
    nodes: Nodes | None = None
    edges: Edges | None = None
    text: Text | None = None

    def check_nulls(self) -> None:
        """Raises INVALID `body_invalid` for a null."""
        wrong = [
            Violation(path=name, message="must not be null")
            for name in sorted(self.model_fields_set)
            if getattr(self, name) is None
        ]
        if wrong:
            raise invalid("body_invalid", "The request body is not valid.", *wrong)

    def to_nodes(self) -> tuple[NodeDefinition, ...] | None:
        return None if self.nodes is None else _nodes(self.nodes)

    def to_edges(self) -> tuple[Edge, ...] | None:
        return None if self.edges is None else _edges(self.edges)


def _nodes(bodies: tuple[NodeBody, ...]) -> tuple[NodeDefinition, ...]:
    return tuple(
        NodeDefinition(id=body.id, kind=body.kind, mode=body.mode, config=cast("JsonObject", body.config))
        for body in bodies
    )


def _edges(bodies: tuple[EdgeBody, ...]) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            source=body.source,
            source_handle=body.source_handle or "",
            target=body.target,
            target_handle=body.target_handle or "input",
        )
        for body in bodies
    )
