"""A compiled workflow: the pure data that execution needs."""

from dataclasses import dataclass
from functools import cached_property

from domain.workflows.graph import (
    AgentNodeConfig,
    JoinStrategy,
    McpServerNodeConfig,
    NodeConfig,
    NodeKind,
    NodeMode,
    NodeSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """An incoming edge from the `handle` of `source`."""

    source: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """A node with its place in the graph.

    - `incoming` are its incoming edges, without tools.
    - `connected_tool_node_ids` are exactly an agent's tools, in the order of the edges.
    - `upstream` are all nodes before it.
    """

    id: str
    kind: NodeKind
    mode: NodeMode
    config: NodeConfig
    settings: NodeSettings
    incoming: tuple[Incoming, ...] = ()
    connected_tool_node_ids: tuple[str, ...] = ()
    upstream: frozenset[str] = frozenset()
    is_sink: bool = False

    @property
    def join(self) -> JoinStrategy:
        return self.settings.join

    @property
    def predecessors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(way.source for way in self.incoming))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Nodes in topological order."""

    nodes: tuple[PlannedNode, ...]

    @cached_property
    def by_id(self) -> dict[str, PlannedNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def followers(self) -> dict[str, tuple[str, ...]]:
        """The nodes that directly wait for each node. Agents wait for their tools too."""
        found: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for source in dict.fromkeys((*node.predecessors, *node.connected_tool_node_ids)):
                found[source].append(node.id)
        return {node_id: tuple(following) for node_id, following in found.items()}

    @property
    def entrypoint(self) -> PlannedNode:
        return next(node for node in self.nodes if node.kind is NodeKind.ENTRYPOINT)

    @property
    def agents(self) -> tuple[tuple[PlannedNode, AgentNodeConfig], ...]:
        """The agents that are steps."""
        steps = (node for node in self.nodes if node.mode is NodeMode.NORMAL)
        return tuple((node, node.config) for node in steps if isinstance(node.config, AgentNodeConfig))


def calls_same_tool(one: PlannedNode, other: PlannedNode) -> bool:
    """Whether both are steps that call the same tool of an MCP server."""
    calls = [
        (node.config.server, node.config.call)
        for node in (one, other)
        if isinstance(node.config, McpServerNodeConfig) and node.config.call is not None
    ]
    return len(calls) == 2 and calls[0] == calls[1]
