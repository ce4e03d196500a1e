"""Checks the edges of a workflow and derives order, cycles and tools."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from domain.nearest import nearest
from domain.workflows.faults import Fault, FaultCode
from domain.workflows.graph import (
    INPUT_HANDLE,
    OUTPUT_HANDLE,
    TOOL_HANDLE,
    TOOLS_HANDLE,
    ConditionConfig,
    Edge,
    NodeDefinition,
    NodeKind,
    NodeMode,
)
from domain.workflows.plan import Incoming, PlannedNode

MAX_SUGGESTIONS = 20
"""Most faults with a suggestion: searching for similar names is expensive."""


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The edges of a workflow by node.

    - `incoming` and `following`: edges between steps.
    - `tools`: edges that give agents tools.
    - `later`: both, because an agent comes after its tools.
    """

    incoming: Mapping[str, tuple[Incoming, ...]]
    following: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, tuple[str, ...]]
    later: Mapping[str, tuple[str, ...]]
    faults: tuple[Fault, ...]
    _upstream: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def wired_tools(self) -> frozenset[str]:
        """Tool nodes that are wired to an agent."""
        return frozenset(source for sources in self.tools.values() for source in sources)

    def upstream(self, node_id: str) -> frozenset[str]:
        """All nodes before a node. A node is before itself only in a cycle."""
        if node_id not in self._upstream:
            found: set[str] = set()
            waiting = [*self._directly_before(node_id)]
            while waiting:
                source = waiting.pop()
                if source not in found:
                    found.add(source)
                    before = self._upstream.get(source)
                    if before is None:
                        waiting += self._directly_before(source)
                    else:
                        found |= before
            self._upstream[node_id] = frozenset(found)
        return self._upstream[node_id]

    def downstream_of(self, roots: Iterable[str]) -> frozenset[str]:
        """The roots, and all nodes after any of them."""
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            node_id = waiting.pop()
            if node_id not in found:
                found.add(node_id)
                waiting += self.following.get(node_id, ())
        return frozenset(found)

    def _directly_before(self, node_id: str) -> tuple[str, ...]:
        return (*(way.source for way in self.incoming.get(node_id, ())), *self.tools.get(node_id, ()))


def edges_to_agents(edges: tuple[Edge, ...], read: Mapping[str, PlannedNode]) -> tuple[Edge, ...]:
    """Edges from the entrypoint to the agents that only edges of tools lead to: they begin with the
    run's input."""
    starts = [node.id for node in read.values() if node.kind is NodeKind.ENTRYPOINT]
    if len(starts) != 1:
        return ()
    given = dict.fromkeys(edge.target for edge in edges if edge.target_handle == TOOLS_HANDLE)
    following = {edge.target for edge in edges if edge.target_handle != TOOLS_HANDLE}
    agents = [read[node_id] for node_id in given if node_id in read and node_id not in following]
    steps = (node for node in agents if node.kind is NodeKind.AGENT and node.mode is NodeMode.NORMAL)
    return tuple(Edge(source=starts[0], target=node.id) for node in steps)


def read_edges(edges: tuple[Edge, ...], nodes: tuple[NodeDefinition, ...], read: Mapping[str, PlannedNode]) -> Wiring:
    """The wiring of all valid edges, and the faults of the others."""
    incoming: dict[str, list[Incoming]] = {}
    following: dict[str, dict[str, None]] = {}
    tools: dict[str, dict[str, None]] = {}
    later: dict[str, dict[str, None]] = {}
    faults: list[Fault] = []
    seen: set[Edge] = set()
    known = dict.fromkeys(node.id for node in nodes)
    for index, edge in enumerate(edges):
        wrong = list(_faults_of(edge, f"edges.{index}", known, read, suggest=len(faults) < MAX_SUGGESTIONS))
        source, target = read.get(edge.source), read.get(edge.target)
        full = Edge(
            source=edge.source,
            target=edge.target,
            source_handle=edge.source_handle or _only_handle(source),
            target_handle=edge.target_handle,
        )
        if not wrong and full in seen:
            message = f"The edge from {edge.source!r} to {edge.target!r} is defined twice."
            ids = (edge.source, edge.target)
            wrong.append(Fault(code=FaultCode.DUPLICATE_EDGE, message=message, node_ids=ids, path=f"edges.{index}"))
        faults += wrong
        if wrong or source is None or target is None:
            continue
        seen.add(full)
        later.setdefault(edge.source, {})[edge.target] = None
        if edge.target_handle == TOOLS_HANDLE:
            tools.setdefault(edge.target, {})[edge.source] = None
        else:
            incoming.setdefault(edge.target, []).append(Incoming(source=edge.source, handle=full.source_handle))
            following.setdefault(edge.source, {})[edge.target] = None
    return Wiring(
        incoming={target: tuple(ways) for target, ways in incoming.items()},
        following={source: tuple(targets) for source, targets in following.items()},
        tools={agent: tuple(sources) for agent, sources in tools.items()},
        later={source: tuple(targets) for source, targets in later.items()},
        faults=tuple(faults),
    )


def cycles(node_ids: tuple[str, ...], wiring: Wiring) -> Iterator[tuple[str, ...]]:
    """One shortest cycle of each strongly connected component, starting with its first node as
    written."""
    told: set[str] = set()
    for node_id in node_ids:
        if node_id in told or node_id not in wiring.upstream(node_id):
            continue
        knot = {other for other in wiring.upstream(node_id) if node_id in wiring.upstream(other)}
        told |= knot
        yield _shortest_way_back(node_id, wiring)


def _shortest_way_back(start: str, wiring: Wiring) -> tuple[str, ...]:
    came_from: dict[str, str] = {}
    level = [start]
    while level:
        further = []
        for node_id in level:
            for target in wiring.later.get(node_id, ()):
                if target == start:
                    way = [node_id]
                    while way[-1] != start:
                        way.append(came_from[way[-1]])
                    return tuple(reversed(way))
                if target not in came_from:
                    came_from[target] = node_id
                    further.append(target)
        level = further
    raise ValueError(f"{start} is in no cycle")


def _faults_of(
    edge: Edge, path: str, known: Mapping[str, None], read: Mapping[str, PlannedNode], *, suggest: bool
) -> Iterator[Fault]:
    ids = tuple(dict.fromkeys(node_id for node_id in (edge.source, edge.target) if node_id in known))
    missing = [
        (end, node_id) for end, node_id in (("source", edge.source), ("target", edge.target)) if node_id not in known
    ]
    for end, node_id in missing:
        near = nearest(node_id, known) if suggest else None
        message = f"The {end} of an edge, {node_id!r}, is not a node" + (
            f"; did you mean {near!r}?" if near is not None else "."
        )
        yield Fault(code=FaultCode.UNKNOWN_NODE, message=message, node_ids=ids, path=f"{path}.{end}")
    source, target = read.get(edge.source), read.get(edge.target)
    if source is not None:
        yield from _source_faults(edge, path, source, ids)
    if source is not None and target is not None and edge.target_handle == TOOLS_HANDLE:
        yield from _nested_faults(path, source, target, ids)
    if target is not None:
        yield from _target_faults(edge, path, target, ids)


def _source_faults(edge: Edge, path: str, source: PlannedNode, ids: tuple[str, ...]) -> Iterator[Fault]:
    handles = _source_handles(source)
    if edge.source_handle not in handles and (
        edge.source_handle or (len(handles) > 1 and source.mode is NodeMode.NORMAL)
    ):
        given = f"has no handle {edge.source_handle!r}" if edge.source_handle else "has several handles"
        message = f"{source.id!r} {given}; it has {', '.join(handles)}."
        yield Fault(code=FaultCode.UNKNOWN_HANDLE, message=message, node_ids=ids, path=f"{path}.source_handle")
    if source.mode is NodeMode.TOOL and edge.target_handle != TOOLS_HANDLE:
        message = f"{source.id!r} is a tool: its edges lead to the handle {TOOLS_HANDLE!r} of agents."
        yield Fault(code=FaultCode.TOOL_EDGE_HANDLE, message=message, node_ids=ids, path=f"{path}.target_handle")
    elif source.mode is NodeMode.NORMAL and edge.target_handle == TOOLS_HANDLE:
        message = f"{source.id!r} is not in tool mode, so it cannot be a tool of {edge.target!r}."
        yield Fault(code=FaultCode.TOOL_EDGE_SOURCE, message=message, node_ids=ids, path=f"{path}.source")


def _target_faults(edge: Edge, path: str, target: PlannedNode, ids: tuple[str, ...]) -> Iterator[Fault]:
    if edge.target_handle == TOOLS_HANDLE:
        if target.kind is not NodeKind.AGENT:
            message = f"{target.id!r} is not an agent, so it has no tools."
            yield Fault(code=FaultCode.TOOL_EDGE_TARGET, message=message, node_ids=ids, path=f"{path}.target")
    elif edge.target_handle != INPUT_HANDLE:
        handles = f"{INPUT_HANDLE}, {TOOLS_HANDLE}" if target.kind is NodeKind.AGENT else INPUT_HANDLE
        message = f"{target.id!r} has no handle {edge.target_handle!r}; edges lead to {handles}."
        yield Fault(code=FaultCode.UNKNOWN_HANDLE, message=message, node_ids=ids, path=f"{path}.target_handle")
    elif target.kind is NodeKind.ENTRYPOINT:
        message = f"{target.id!r} is the entrypoint: no edge leads to it."
        yield Fault(code=FaultCode.EDGE_INTO_ENTRYPOINT, message=message, node_ids=ids, path=f"{path}.target")


def _nested_faults(path: str, source: PlannedNode, target: PlannedNode, ids: tuple[str, ...]) -> Iterator[Fault]:
    """An agent that is called as a tool is held to the policies of its caller, but not to those of
    a caller's caller."""
    if all(node.kind is NodeKind.AGENT and node.mode is NodeMode.TOOL for node in (source, target)):
        message = f"{target.id!r} is a tool itself, so the agent {source.id!r} cannot be a tool of it."
        yield Fault(code=FaultCode.TOOL_EDGE_TARGET, message=message, node_ids=ids, path=f"{path}.target")


def _source_handles(node: PlannedNode) -> tuple[str, ...]:
    if isinstance(node.config, ConditionConfig):
        return node.config.handles
    return (TOOL_HANDLE, TOOLS_HANDLE, OUTPUT_HANDLE) if node.mode is NodeMode.TOOL else (OUTPUT_HANDLE,)


def _only_handle(node: PlannedNode | None) -> str:
    return "" if node is None else _source_handles(node)[0]
