"""A compiled workflow: pure data, from which alone it is executed."""

from dataclasses import dataclass
from functools import cached_property

from domain.workflows.graph import AgentConfig, JoinStrategy, NodeConfig, NodeKind, NodeMode, NodeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A way in: an edge from the `handle` of `source`."""

    source: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """A node with what the graph says of it. `incoming` are its ways in, tools not counted; an agent's tools are
    `connected_tool_node_ids`, exactly these, in the order of the edges. `upstream` are all nodes it comes after."""

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
        """When it goes on that several edges lead to."""
        return self.settings.join

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The nodes it directly comes after, each once."""
        return tuple(dict.fromkeys(way.source for way in self.incoming))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Nodes in an order in which each comes after its upstream."""

    nodes: tuple[PlannedNode, ...]

    @cached_property
    def by_id(self) -> dict[str, PlannedNode]:
        """Nodes by their ids."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def followers(self) -> dict[str, tuple[str, ...]]:
        """Which nodes directly wait for each, agents for their tools too."""
        found: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for source in dict.fromkeys((*node.predecessors, *node.connected_tool_node_ids)):
                found[source].append(node.id)
        return {node_id: tuple(following) for node_id, following in found.items()}

    @property
    def entrypoint(self) -> PlannedNode:
        """Where it begins."""
        return next(node for node in self.nodes if node.kind is NodeKind.ENTRYPOINT)

    @property
    def agents(self) -> tuple[tuple[PlannedNode, AgentConfig], ...]:
        """Nodes that run agents."""
        return tuple((node, node.config) for node in self.nodes if isinstance(node.config, AgentConfig))
