"""Layout of a workflow in layers from left to right, in topological order.
- A node is in the layer after its last predecessor, a tool in the layer before its first agent.
- Nodes of a layer are ordered by their neighbours (barycenter method of Sugiyama, Tagawa and Toda,
  1981).
- Long edges bend around nodes. Invalid workflows, also with cycles, are drawn too.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from domain.workflows.graph import Edge, NodeMode, WorkflowDefinition

NODE_WIDTH = 190
NODE_HEIGHT = 72
COLUMN_GAP = 72
ROW_GAP = 26
MARGIN = 16
_BEND_HEIGHT = 18
_SWEEPS = 6
_MAX_BENDS = 3_000
"""Beyond this number long edges are drawn straight."""


@dataclass(slots=True)
class _Place:
    """A node, or a bend of an edge, in its layer."""

    layer: int
    height: int
    order: float = 0.0
    before: list["_Place"] = field(default_factory=list)
    after: list["_Place"] = field(default_factory=list)
    y: float = 0.0

    @property
    def x(self) -> int:
        return MARGIN + self.layer * (NODE_WIDTH + COLUMN_GAP)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The points of an edge, from source to target."""

    edge: Edge
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """`corners` has the upper left corner of each drawn node, by its index in the definition."""

    width: float
    height: float
    corners: dict[int, tuple[float, float]]
    lines: tuple[Line, ...]


def layout(definition: WorkflowDefinition) -> Layout:
    """The layout of all nodes with unique ids, and of the edges between them."""
    index = {node.id: at for at, node in reversed(tuple(enumerate(definition.nodes)))}
    edges = [edge for edge in definition.edges if edge.source in index and edge.target in index]
    layers = _layers(definition, index, edges)
    places = {at: _Place(layers[at], NODE_HEIGHT) for at in index.values()}
    long = sum(max(0, layers[index[edge.target]] - layers[index[edge.source]] - 1) for edge in edges)
    chains = [_chain(edge, places, index, bends=long <= _MAX_BENDS) for edge in edges]
    columns = _ordered([*places.values(), *(place for chain in chains for place in chain[1:-1])])
    height = _stack(columns)
    width = (max((place.layer for place in places.values()), default=0) + 1) * (NODE_WIDTH + COLUMN_GAP)
    return Layout(
        width=width - COLUMN_GAP + 2 * MARGIN,
        height=height,
        corners={at: (place.x, place.y) for at, place in places.items()},
        lines=_lines(edges, chains),
    )


def _layers(definition: WorkflowDefinition, index: dict[str, int], edges: Sequence[Edge]) -> dict[int, int]:
    """Layers of nodes. Nodes of a cycle that no other edge reaches follow those already placed."""
    following: dict[int, list[int]] = defaultdict(list)
    missing: dict[int, int] = dict.fromkeys(index.values(), 0)
    for edge in edges:
        following[index[edge.source]].append(index[edge.target])
        missing[index[edge.target]] += 1
    layers = dict.fromkeys(index.values(), 0)
    ready, left = deque(at for at, count in missing.items() if count == 0), set(index.values())
    while left:
        if not ready:
            ready.append(min(left))
        at = ready.popleft()
        if at not in left:
            continue
        left.remove(at)
        for target in following[at]:
            if target in left:
                layers[target] = max(layers[target], layers[at] + 1)
                missing[target] -= 1
                if missing[target] == 0:
                    ready.append(target)
    for at in index.values():
        targets = [layers[target] for target in following[at]]
        if definition.nodes[at].mode == NodeMode.TOOL.value and targets and layers[at] == 0:
            layers[at] = max(0, min(targets) - 1)
    return layers


def _chain(edge: Edge, places: dict[int, _Place], index: dict[str, int], *, bends: bool) -> list[_Place]:
    """The places that an edge passes, which become neighbours."""
    source, target = places[index[edge.source]], places[index[edge.target]]
    between = range(source.layer + 1, target.layer) if bends else ()
    chain = [source, *(_Place(layer, _BEND_HEIGHT) for layer in between), target]
    for one, other in pairwise(chain):
        if one.layer < other.layer:
            one.after.append(other)
            other.before.append(one)
    return chain


def _ordered(places: Sequence[_Place]) -> list[list[_Place]]:
    columns: dict[int, list[_Place]] = defaultdict(list)
    for place in places:
        place.order = len(columns[place.layer])
        columns[place.layer].append(place)
    numbers = sorted(columns)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for number in numbers if forward else reversed(numbers):
            column = columns[number]
            weights = {id(place): _centre(place.before if forward else place.after, place.order) for place in column}
            column.sort(key=lambda place: weights[id(place)])
            for order, place in enumerate(column):
                place.order = float(order)
    return [columns[number] for number in numbers]


def _centre(neighbours: Sequence[_Place], otherwise: float) -> float:
    return sum(place.order for place in neighbours) / len(neighbours) if neighbours else otherwise


def _stack(columns: Sequence[Sequence[_Place]]) -> float:
    """Set the height of each place; returns the total height."""
    heights = [sum(place.height + ROW_GAP for place in column) - ROW_GAP for column in columns]
    tallest = max(heights, default=0)
    for column, height in zip(columns, heights, strict=True):
        y = MARGIN + (tallest - height) / 2
        for place in column:
            place.y = y
            y += place.height + ROW_GAP
    return tallest + 2 * MARGIN


def _lines(edges: Sequence[Edge], chains: Sequence[Sequence[_Place]]) -> tuple[Line, ...]:
    """Lines of edges. Edges that share a side of a node have distinct end points."""
    leaving: dict[int, list[int]] = defaultdict(list)
    reaching: dict[int, list[int]] = defaultdict(list)
    for number, chain in enumerate(chains):
        leaving[id(chain[0])].append(number)
        reaching[id(chain[-1])].append(number)
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for ports, found, end, neighbour in ((leaving, starts, 0, 1), (reaching, ends, -1, -2)):
        for numbers in ports.values():
            numbers.sort(key=lambda number: chains[number][neighbour].middle)
            for order, number in enumerate(numbers, start=1):
                place = chains[number][end]
                found[number] = place.y + place.height * order / (len(numbers) + 1)
    lines = []
    for number, (edge, chain) in enumerate(zip(edges, chains, strict=True)):
        points = [(chain[0].x + NODE_WIDTH, starts[number])]
        for bend in chain[1:-1]:
            points += [(bend.x, bend.middle), (bend.x + NODE_WIDTH, bend.middle)]
        lines.append(Line(edge=edge, points=(*points, (chain[-1].x, ends[number]))))
    return tuple(lines)
