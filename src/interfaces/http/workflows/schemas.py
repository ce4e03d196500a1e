"""Bodies of the workflow routes. Kinds, modes and configurations are untyped here: the compiler
reports all their faults at once."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.system.changes import Changes
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

    def to_domain(self) -> NodeDefinition:
        return NodeDefinition(id=self.id, kind=self.kind, mode=self.mode, config=cast("JsonObject", self.config))


class EdgeBody(Body):
    """An edge. The target handle `tools` wires a tool to an agent."""

    shown_as: ClassVar[type] = EdgeView

    source: Identifier
    source_handle: Identifier | None = None
    target: Identifier
    target_handle: Identifier | None = None

    def to_domain(self) -> Edge:
        return Edge(
            source=self.source,
            source_handle=self.source_handle or "",
            target=self.target,
            target_handle=self.target_handle or "input",
        )


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
    team: Name | None = None
    text: Text | None = None

    def to_definition(self) -> WorkflowDefinition:
        return WorkflowDefinition(**self.values(without=frozenset({"text"})))


class UpdateWorkflowBody(Patch, of=WorkflowBody):
    """Changes to a workflow; each creates a new version. Nodes and edges are replaced entirely;
    `text` replaces all parts: without `team`, it gives the workflow to the organization."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "answers-2"},)
    nullable: ClassVar[frozenset[str]] = frozenset({"team"})

    text: Text | None = None

    def to_changes(self) -> Changes:
        """Fields of `WorkflowDefinition`. Raises INVALID `body_invalid` for a null that is not
        allowed."""
        return self.changes(without=frozenset({"text"}))
