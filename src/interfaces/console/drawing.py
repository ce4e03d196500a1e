"""Draws a workflow for pages: outlines, lines and texts with positions. The style sheet sets
colours and fonts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from domain.workflows.diagram import caption
from domain.workflows.execution import NodeStatus
from domain.workflows.graph import OUTPUT_HANDLE, TOOLS_HANDLE, NodeKind, NodeMode, WorkflowDefinition
from interfaces.console.layout import NODE_HEIGHT, NODE_WIDTH, Layout, Line, layout

SYMBOLS: Mapping[NodeStatus, str] = {
    NodeStatus.PENDING: "○",
    NodeStatus.RUNNING: "▶",
    NodeStatus.WAITING: "?",
    NodeStatus.READY: "◆",
    NodeStatus.SUCCEEDED: "✓",
    NodeStatus.FAILED: "✕",
    NodeStatus.SKIPPED: "–",
    NodeStatus.CANCELLED: "■",
}
"""Symbols of states, in addition to colour and text."""
_LABEL = 22
_EDGE_LABEL = 12
_ARROW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """A node: `outline` is a path around it, `inner` a second path for tools."""

    id: str
    name: str
    caption: str
    x: float
    y: float
    outline: str
    inner: str
    kind: str
    status: NodeStatus | None
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEdge:
    """An edge: the `path` of its line, its arrow `head`, and the `label` of its output handle if
    the source has several."""

    path: str
    head: str
    label: str
    x: float
    y: float
    is_tool: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The complete drawing, in pixels."""

    width: float
    height: float
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]


def drawing(definition: WorkflowDefinition, statuses: Mapping[str, NodeStatus] | None = None) -> Drawing:
    """The drawing. With `statuses` each node shows its status; absent nodes are pending."""
    placed = layout(definition)
    return Drawing(
        width=placed.width,
        height=placed.height,
        nodes=tuple(_node(definition, at, placed, statuses) for at in sorted(placed.corners)),
        edges=tuple(map(_edge, placed.lines)),
    )


def _node(
    definition: WorkflowDefinition, at: int, placed: Layout, statuses: Mapping[str, NodeStatus] | None
) -> DrawnNode:
    node = definition.nodes[at]
    x, y = placed.corners[at]
    is_tool = node.mode == NodeMode.TOOL.value
    status = None if statuses is None else statuses.get(node.id, NodeStatus.PENDING)
    return DrawnNode(
        id=node.id,
        name=_short(node.id, _LABEL),
        caption=_short(f"tool: {caption(node)}" if is_tool else caption(node), _LABEL + 4),
        x=x,
        y=y,
        outline=_outline(node.kind, 0),
        inner=_outline(node.kind, 4) if is_tool else "",
        kind=node.kind,
        status=status,
        symbol="" if status is None else SYMBOLS[status],
    )


def _outline(kind: str, inset: int) -> str:
    """The outline of a node whose upper left corner is the origin."""
    left, top, right, bottom = inset, inset, NODE_WIDTH - inset, NODE_HEIGHT - inset
    match kind:
        case NodeKind.CONDITION:
            cut, middle = 14, NODE_HEIGHT / 2
            corners: Sequence[tuple[float, float]] = (
                *((left, middle), (left + cut, top), (right - cut, top)),
                *((right, middle), (right - cut, bottom), (left + cut, bottom)),
            )
        case NodeKind.HUMAN_INPUT:
            corners = ((left + 12, top), (right, top), (right - 12, bottom), (left, bottom))
        case NodeKind.ENTRYPOINT:
            return _rounded(left, top, right, bottom, (bottom - top) / 2)
        case NodeKind.TRANSFORM:
            return _rounded(left, top, right, bottom, 18)
        case _:
            return _rounded(left, top, right, bottom, 5)
    return "M" + " L".join(f"{x:g},{y:g}" for x, y in corners) + " Z"


def _rounded(left: float, top: float, right: float, bottom: float, radius: float) -> str:
    arc = f"a{radius:g},{radius:g} 0 0 1"
    return (
        f"M{left + radius:g},{top:g} H{right - radius:g} {arc} {radius:g},{radius:g} V{bottom - radius:g} "
        f"{arc} -{radius:g},{radius:g} H{left + radius:g} {arc} -{radius:g},-{radius:g} V{top + radius:g} "
        f"{arc} {radius:g},-{radius:g} Z"
    )


def _edge(line: Line) -> DrawnEdge:
    edge, points = line.edge, line.points
    x, y = points[-1]
    ended = (*points[:-1], (x - _ARROW, y))
    steps = [f"M{points[0][0]:g},{points[0][1]:g}"]
    for number, (one, other) in enumerate(pairwise(ended)):
        # Every second segment passes straight through a column.
        steps.append(f"H{other[0]:g}" if number % 2 else _curve(one, other))
    is_tool = edge.target_handle == TOOLS_HANDLE
    told = "" if is_tool or edge.source_handle in ("", OUTPUT_HANDLE) else edge.source_handle
    return DrawnEdge(
        path=" ".join(steps),
        head=f"M{x:g},{y:g} l-{_ARROW},-{_ARROW / 2:g} v{_ARROW} Z",
        label=_short(told, _EDGE_LABEL),
        x=points[0][0] + 6,
        y=points[0][1] - 5,
        is_tool=is_tool,
    )


def _curve(one: tuple[float, float], other: tuple[float, float]) -> str:
    bend = max(30.0, abs(other[0] - one[0]) / 2)
    return f"C{one[0] + bend:g},{one[1]:g} {other[0] - bend:g},{other[1]:g} {other[0]:g},{other[1]:g}"


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
