"""Pictures of workflows."""

from domain.workflows.diagram import mermaid
from domain.workflows.execution import NodeStatus
from tests.workflow_builders import agent, entrypoint, node, tool, workflow


def test_what_users_wrote_stands_in_labels_only_and_cannot_leave_them() -> None:
    hostile = 'x"]; click n0 "javascript:alert(1)" <img>\n#'
    drawn = mermaid(workflow(entrypoint("end"), agent("subgraph", hostile), "end -> subgraph"))
    assert drawn.splitlines()[0] == "flowchart LR"
    assert len(drawn.splitlines()) == 4
    (shown,) = [line for line in drawn.splitlines() if "subgraph" in line]
    assert shown.count('"') == 2
    assert "<img>" not in shown
    assert "n0 --> n1" in drawn


def test_handles_and_tools_are_told_apart() -> None:
    choose = node("choose", "condition", expression="@")
    drawn = mermaid(workflow(entrypoint(), choose, agent("a"), tool("w"), "choose.true -> a", "w -> a.tools"))
    assert 'n1 -- "true" --> n2' in drawn
    assert "n3 -. tool .-> n2" in drawn


def test_nodes_of_a_run_say_where_they_stand_and_are_coloured_by_it() -> None:
    drawn = mermaid(workflow(entrypoint(), agent("a"), "start -> a"), {"start": NodeStatus.SUCCEEDED})
    assert 'n0(["start<br/>entrypoint<br/>succeeded"])' in drawn
    assert 'n1["a<br/>agent guide<br/>pending"]' in drawn
    assert "class n0 succeeded" in drawn
    assert "class n1 pending" in drawn
    for status in NodeStatus:
        assert f"classDef {status} fill:" in drawn
