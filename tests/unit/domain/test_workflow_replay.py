"""What a new run takes over from an earlier one."""

import pytest

from domain.workflows.decision import decide
from domain.workflows.execution import NodeError, NodeRun, NodeStatus
from domain.workflows.replay import alone, replayed_from
from tests.builders import START
from tests.refusals import refused
from tests.workflow_builders import agent, entrypoint, node, planned, tool, transform

pytestmark = pytest.mark.requirement("F4", "U6")

PLAN = planned(
    entrypoint(),
    transform("left"),
    transform("right"),
    tool("weather"),
    agent("writer"),
    transform("end"),
    "start -> left",
    "start -> right",
    "left -> writer",
    "weather -> writer.tools",
    "writer -> end",
    "right -> end",
)


def done(node_id: str, output: str = "") -> NodeRun:
    return NodeRun(node_id=node_id, status=NodeStatus.SUCCEEDED, output=output or node_id, attempt=1, started_at=START)


def failed(node_id: str) -> NodeRun:
    return NodeRun(node_id=node_id, status=NodeStatus.FAILED, error=NodeError(code="x", detail="y"), attempt=1)


def states(*nodes: NodeRun) -> dict[str, NodeRun]:
    return {each.node_id: each for each in nodes}


EARLIER = states(done("start"), done("left"), done("right"), done("writer"), done("end"))


def test_what_does_not_come_after_the_node_is_taken_over_and_not_executed() -> None:
    kept = replayed_from(PLAN, EARLIER, "writer")
    assert kept.keys() == {"start", "left", "right"}
    assert {each.attempt for each in kept.values()} == {0}
    assert all(each.output == each.node_id for each in kept.values())
    begun = decide(PLAN, kept, now=START)
    assert [each.node_id for each in begun.start] == ["weather"]
    ready = kept | states(NodeRun(node_id="weather", status=NodeStatus.READY, attempt=1))
    assert [each.node_id for each in decide(PLAN, ready, now=START).start] == ["writer"]


def test_what_failed_before_the_node_is_executed_again_with_all_after_it() -> None:
    earlier = EARLIER | states(failed("left"))
    assert replayed_from(PLAN, earlier, "end").keys() == {"start", "right"}


def test_from_the_entrypoint_everything_is_executed_again() -> None:
    assert replayed_from(PLAN, EARLIER, "start") == {}


def test_a_way_that_was_not_taken_stays_so() -> None:
    plan = planned(
        entrypoint(),
        node("good", "condition", expression="@"),
        transform("yes"),
        transform("no"),
        transform("end"),
        "start -> good",
        "good.true -> yes",
        "good.false -> no",
        "yes -> end",
        "no -> end",
    )
    taken = NodeRun(node_id="good", status=NodeStatus.SUCCEEDED, output=True, handle="true")
    skipped = NodeRun(node_id="no", status=NodeStatus.SKIPPED)
    kept = replayed_from(plan, states(done("start"), taken, done("yes"), skipped, done("end")), "end")
    assert kept.keys() == {"start", "good", "yes", "no"}
    assert [each.node_id for each in decide(plan, kept, now=START).start] == ["end"]
    tried = alone(plan, states(done("start"), taken), "no", at=START)
    assert [each.node_id for each in decide(plan, tried, now=START).start] == ["no"]


def test_a_node_alone_has_what_came_before_and_its_tools_and_ends_the_run() -> None:
    kept = alone(PLAN, EARLIER, "writer", at=START)
    cancelled = {each.node_id for each in kept.values() if each.status is NodeStatus.CANCELLED}
    assert cancelled == {"right", "end"}
    assert kept.keys() - cancelled == {"start", "left"}
    ready = kept | states(NodeRun(node_id="weather", status=NodeStatus.READY, attempt=1))
    assert [each.node_id for each in decide(PLAN, ready, now=START).start] == ["writer"]
    assert decide(PLAN, ready | states(done("writer")), now=START).outlook == "completed"


def test_a_node_alone_needs_the_outputs_of_the_nodes_before_it() -> None:
    with refused("node_input_missing"):
        alone(PLAN, states(done("start"), failed("left")), "writer", at=START)


@pytest.mark.parametrize("node_id", ["weather", "unknown"])
def test_tools_and_unknown_nodes_are_not_replayed(node_id: str) -> None:
    with refused("node_not_a_step"):
        replayed_from(PLAN, EARLIER, node_id)
    with refused("node_not_a_step"):
        alone(PLAN, EARLIER, node_id, at=START)
