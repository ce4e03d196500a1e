"""The picture of a workflow: everything is on it, in the order in which it goes, whatever the graph is like."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workflows.execution import NodeStatus
from domain.workflows.graph import Edge, NodeDefinition, WorkflowDefinition
from interfaces.console.drawing import SYMBOLS, Drawing, drawing
from interfaces.console.layout import NODE_HEIGHT, NODE_WIDTH, layout


def graph(nodes: str, *edges: str, tools: tuple[str, ...] = ()) -> WorkflowDefinition:
    """Of nodes with ids of one letter, edges as `ab`; in `tools` are those in tool mode."""
    return WorkflowDefinition(
        name="x",
        nodes=tuple(
            NodeDefinition(
                id=each, kind="mcp_server" if each in tools else "transform", mode="tool" if each in tools else "normal"
            )
            for each in nodes
        ),
        edges=tuple(
            Edge(source=edge[0], target=edge[1], target_handle="tools" if edge[0] in tools else "input")
            for edge in edges
        ),
    )


def columns(definition: WorkflowDefinition) -> str:
    """The ids from left to right; `|` between columns."""
    placed: dict[float, str] = {}
    for at, (x, _) in sorted(layout(definition).corners.items()):
        placed[x] = placed.get(x, "") + definition.nodes[at].id
    return "|".join(placed[x] for x in sorted(placed))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (graph("abcd", "ab", "ac", "bd", "cd"), "a|bc|d"),
        (graph("dcba", "ab", "bc", "cd", "ad"), "a|b|c|d"),
        (graph("abct", "ab", "bc", "tc", tools=("t",)), "a|bt|c"),
        (graph("ab", "ab", "bx", "xa"), "a|b"),
        (graph("abcd", "ab", "bc", "cb", "cd"), "a|b|c|d"),
        (graph("aab", "ab"), "a|b"),
        (graph("a"), "a"),
        (graph(""), ""),
    ],
)
def test_nodes_stand_right_of_what_leads_to_them(definition: WorkflowDefinition, expected: str) -> None:
    assert columns(definition) == expected


IDS = "abcdefghij"


@given(
    st.lists(st.sampled_from([f"{one}{other}" for one in IDS for other in IDS]), max_size=40),
    st.sets(st.sampled_from(IDS)),
)
def test_every_node_and_edge_is_drawn_and_nothing_lies_on_anything_else(edges: list[str], tools: set[str]) -> None:
    definition = graph(IDS, *edges, tools=tuple(tools))
    drawn = drawing(definition)
    assert [node.id for node in drawn.nodes] == list(IDS)
    assert len(drawn.edges) == len(edges)
    assert sum(edge.is_tool for edge in drawn.edges) == sum(edge[0] in tools for edge in edges)
    corners = sorted((node.x, node.y) for node in drawn.nodes)
    for x, y in corners:
        assert 0 <= x <= drawn.width - NODE_WIDTH
        assert 0 <= y <= drawn.height - NODE_HEIGHT
    for (x, y), (right, below) in pairwise(corners):
        assert right >= x + NODE_WIDTH or below >= y + NODE_HEIGHT


def test_a_long_edge_passes_between_the_nodes_of_the_columns_that_it_crosses() -> None:
    definition = graph("abcd", "ab", "bc", "cd", "ad")
    placed = layout(definition)
    (line,) = (line for line in placed.lines if (line.edge.source, line.edge.target) == ("a", "d"))
    for x, y in line.points[1:-1]:
        for left, top in placed.corners.values():
            if left <= x <= left + NODE_WIDTH:
                assert not top <= y <= top + NODE_HEIGHT


def test_the_largest_workflow_is_drawn_with_straight_lines_rather_than_thousands_of_bends() -> None:
    nodes = tuple(NodeDefinition(id=f"n{at}", kind="transform") for at in range(500))
    chain = tuple(Edge(source=f"n{at}", target=f"n{at + 1}") for at in range(499))
    across = tuple(Edge(source="n0", target=f"n{at}") for at in range(2, 500))
    placed = layout(WorkflowDefinition(name="x", nodes=nodes, edges=(*chain, *across)))
    assert {len(line.points) for line in placed.lines} == {2}
    assert len(placed.corners) == 500


def states(drawn: Drawing) -> dict[str, tuple[NodeStatus | None, str]]:
    return {node.id: (node.status, node.symbol) for node in drawn.nodes}


def test_each_state_has_a_sign_of_its_own_beside_its_colour() -> None:
    assert set(SYMBOLS) == set(NodeStatus)
    assert len(set(SYMBOLS.values())) == len(NodeStatus)
    drawn = drawing(graph("ab", "ab"), {"a": NodeStatus.FAILED})
    assert states(drawn) == {"a": (NodeStatus.FAILED, "✕"), "b": (NodeStatus.PENDING, "○")}
    assert states(drawing(graph("a"))) == {"a": (None, "")}


def test_what_a_user_wrote_is_cut_to_the_node_that_it_stands_on() -> None:
    name = "a" * 60
    drawn = drawing(
        WorkflowDefinition(
            name="x",
            nodes=(
                NodeDefinition(id=name, kind="agent", config={"agent": "b" * 90}),
                NodeDefinition(id="c", kind="transform"),
            ),
            edges=(Edge(source=name, source_handle="h" * 80, target="c"),),
        )
    )
    assert re.fullmatch(r"a{21}…", drawn.nodes[0].name)
    assert drawn.nodes[0].caption.endswith("…")
    assert re.fullmatch(r"h{11}…", drawn.edges[0].label)
