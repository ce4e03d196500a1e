"""A workflow as a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html).

Nodes get generated names, because Mermaid reserves some words. User text appears in quoted labels
only.
"""

from collections.abc import Mapping

from domain.workflows.execution import NodeStatus
from domain.workflows.graph import TOOLS_HANDLE, Edge, NodeDefinition, NodeKind, NodeMode, WorkflowDefinition

_STYLES: Mapping[NodeStatus, str] = {
    NodeStatus.PENDING: "fill:#f4f4f5,stroke:#a1a1aa,color:#52525b",
    NodeStatus.RUNNING: "fill:#dbeafe,stroke:#2563eb,color:#1e3a8a",
    NodeStatus.WAITING: "fill:#fef9c3,stroke:#ca8a04,color:#713f12",
    NodeStatus.READY: "fill:#e0e7ff,stroke:#4f46e5,color:#312e81",
    NodeStatus.SUCCEEDED: "fill:#dcfce7,stroke:#16a34a,color:#14532d",
    NodeStatus.FAILED: "fill:#fee2e2,stroke:#dc2626,color:#7f1d1d",
    NodeStatus.SKIPPED: "fill:#fafafa,stroke:#d4d4d8,color:#a1a1aa,stroke-dasharray:4",
    NodeStatus.CANCELLED: "fill:#f4f4f5,stroke:#71717a,color:#71717a,stroke-dasharray:2",
}
_SHAPES: Mapping[str, tuple[str, str]] = {
    NodeKind.ENTRYPOINT: ("([", "])"),
    NodeKind.CONDITION: ("{", "}"),
    NodeKind.HUMAN_INPUT: ("[/", "/]"),
    NodeKind.TRANSFORM: ("(", ")"),
}
_MAX_LABEL = 80


def mermaid(definition: WorkflowDefinition, statuses: Mapping[str, NodeStatus] | None = None) -> str:
    """The flowchart. With the `statuses` of a run, each node shows its status and is coloured by
    it; absent nodes are pending."""
    names = {node.id: f"n{index}" for index, node in enumerate(definition.nodes)}
    lines = ["flowchart LR"]
    for node in definition.nodes:
        status = None if statuses is None else statuses.get(node.id, NodeStatus.PENDING)
        lines.append(f"    {names[node.id]}{_shape(node, status)}")
    lines += [
        f"    {names[edge.source]} {_arrow(edge)} {names[edge.target]}"
        for edge in definition.edges
        if edge.source in names and edge.target in names
    ]
    if statuses is not None:
        lines += [f"    classDef {status} {style}" for status, style in _STYLES.items()]
        for node in definition.nodes:
            lines.append(f"    class {names[node.id]} {statuses.get(node.id, NodeStatus.PENDING)}")
    return "\n".join(lines) + "\n"


def _shape(node: NodeDefinition, status: NodeStatus | None) -> str:
    left, right = ("[[", "]]") if node.mode == NodeMode.TOOL.value else _SHAPES.get(node.kind, ("[", "]"))
    said = [node.id, caption(node), *([] if status is None else [status.value])]
    label = "<br/>".join(map(_label, said))
    return f'{left}"{label}"{right}'


def caption(node: NodeDefinition) -> str:
    """A short description of a node."""
    match node.kind:
        case NodeKind.AGENT:
            return f"agent {node.config.get('agent', '')}"
        case NodeKind.MCP_SERVER:
            return f"MCP server {node.config.get('server', '')}"
        case NodeKind.NATIVE_TOOL:
            return f"native tool {node.config.get('tool', '')}"
        case NodeKind.HTTP_REQUEST:
            return "HTTP request"
        case kind:
            return kind.replace("_", " ")


def _arrow(edge: Edge) -> str:
    if edge.target_handle == TOOLS_HANDLE:
        return "-. tool .->"
    if edge.source_handle in ("", "output"):
        return "-->"
    return f'-- "{_label(edge.source_handle)}" -->'


def _label(text: str) -> str:
    """A quoted Mermaid label: HTML, with `#…;` for special characters."""
    shown = text if len(text) <= _MAX_LABEL else f"{text[:_MAX_LABEL]}…"
    return "".join(
        character if character.isalnum() or character in " _-.,:/{}()[]?!'+*=…" else f"#{ord(character)};"
        for character in " ".join(shown.split())
    )
