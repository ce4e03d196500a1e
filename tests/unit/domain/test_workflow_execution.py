"""A workflow run as a state machine: what follows from what is stored, whatever the order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonValue
from domain.workflows.decision import MAX_PARALLEL, Outlook, WorkflowDecision, decide
from domain.workflows.execution import (
    OUTCOME_UNKNOWN,
    TOOL_UNAVAILABLE,
    TOOLS_NOT_READY,
    NodeError,
    NodeRun,
    NodeStatus,
)
from domain.workflows.graph import NodeDefinition, NodeMode
from domain.workflows.plan import Plan
from tests.workflow_builders import agent, entrypoint, node, planned, tool, transform

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BROKEN = NodeError(code="broken", detail="It broke.")
FLAKY = NodeError(code="flaky", detail="It may work.", retryable=True)


@dataclass
class Story:
    """A workflow run that is told what happens; rows are all that it keeps."""

    plan: Plan
    now: datetime = NOW
    rows: dict[str, NodeRun] = field(default_factory=dict)
    decision: WorkflowDecision = field(default_factory=WorkflowDecision)
    starts: list[str] = field(default_factory=list)

    def advance(self) -> "Story":
        self.decision = decide(self.plan, self.rows, now=self.now)
        for run in (*self.decision.start, *self.decision.changed):
            self.rows[run.node_id] = run
        self.starts += [run.node_id for run in self.decision.start]
        return self

    def succeed(self, node_id: str, output: JsonValue = None, handle: str | None = None) -> "Story":
        run = self.rows[node_id]
        is_tool = self.plan.by_id[node_id].mode is NodeMode.TOOL
        self.rows[node_id] = run.ready(at=self.now) if is_tool else run.succeeded(output, at=self.now, handle=handle)
        return self.advance()

    def fail(self, node_id: str, error: NodeError = BROKEN) -> "Story":
        self.rows[node_id] = self.rows[node_id].attempt_failed(error, self.plan.by_id[node_id], at=self.now)
        return self.advance()

    def later(self, seconds: float) -> "Story":
        self.now += timedelta(seconds=seconds)
        return self.advance()

    @property
    def running(self) -> set[str]:
        return {node_id for node_id, run in self.rows.items() if run.status is NodeStatus.RUNNING}

    def status(self, node_id: str) -> NodeStatus:
        return self.rows[node_id].status


def story(*parts: NodeDefinition | str) -> Story:
    return Story(planned(*parts)).advance()


DIAMOND = ("start -> a", "start -> b", "a -> end", "b -> end")


def diamond(**config: object) -> Story:
    return story(entrypoint(), transform("a"), transform("b"), transform("end", **config), *DIAMOND).succeed("start")


def test_branches_go_in_parallel_and_all_waits_for_each() -> None:
    told = diamond()
    assert told.running == {"a", "b"}
    assert told.succeed("b").running == {"a"}
    assert told.succeed("a").running == {"end"}
    told.succeed("end", "done")
    assert (told.decision.outlook, told.decision.output) == (Outlook.COMPLETED, "done")


@pytest.mark.requirement("F4")
def test_any_goes_with_the_first_that_succeeds_and_the_others_go_on() -> None:
    told = diamond(join="any").fail("a")
    assert told.decision.outlook is Outlook.RUNNING
    told.succeed("b")
    assert told.running == {"end"}
    other = diamond(join="any").succeed("a")
    assert other.running == {"b", "end"}
    assert other.fail("b").succeed("end").decision.outlook is Outlook.COMPLETED
    assert other.starts.count("end") == 1


@pytest.mark.requirement("F4")
def test_first_cancels_what_nothing_else_waits_for() -> None:
    told = story(
        entrypoint(),
        transform("a"),
        transform("b"),
        transform("b2"),
        transform("shared"),
        transform("end", join="first"),
        transform("side"),
        "start -> a",
        "start -> b",
        "start -> shared",
        "a -> end",
        "b -> b2",
        "b2 -> end",
        "shared -> end",
        "shared -> side",
    ).succeed("start")
    told.succeed("a")
    assert told.running == {"shared", "end"}
    assert (told.status("b"), told.status("b2")) == (NodeStatus.CANCELLED, NodeStatus.CANCELLED)


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("join", ["any", "first"])
def test_a_join_that_nothing_is_left_for_fails(join: str) -> None:
    told = diamond(join=join).fail("a").fail("b")
    assert told.decision.outlook is Outlook.FAILED
    assert told.decision.error == BROKEN
    assert told.status("end") is NodeStatus.SKIPPED


def test_branches_not_taken_are_skipped_up_to_where_ways_meet() -> None:
    told = story(
        entrypoint(),
        node("choose", "condition", expression="@"),
        transform("yes"),
        transform("no"),
        transform("no2"),
        transform("end"),
        "start -> choose",
        "choose.true -> yes",
        "choose.false -> no",
        "no -> no2",
        "yes -> end",
        "no2 -> end",
    )
    told.succeed("start").succeed("choose", handle="true")
    assert (told.status("no"), told.status("no2")) == (NodeStatus.SKIPPED, NodeStatus.SKIPPED)
    told.succeed("yes").succeed("end", 1)
    assert (told.decision.outlook, told.decision.output) == (Outlook.COMPLETED, 1)


def test_a_failure_fails_the_run_and_cancels_what_goes_on() -> None:
    told = diamond().fail("a")
    assert (told.decision.outlook, told.decision.failed_node, told.decision.error) == (Outlook.FAILED, "a", BROKEN)
    assert told.status("b") is NodeStatus.CANCELLED
    assert told.running == set()


def test_a_node_is_tried_as_often_as_it_says_each_time_after_twice_the_wait() -> None:
    flaky = transform("a", retry={"attempts": 3, "delay_s": 2})
    told = story(entrypoint(), flaky, "start -> a").succeed("start").fail("a", FLAKY)
    assert told.decision.wake_at == NOW + timedelta(seconds=2)
    assert told.later(1.9).running == set()
    assert told.later(0.1).running == {"a"}
    told.fail("a", FLAKY)
    assert told.later(3.9).running == set()
    assert told.later(0.1).fail("a", FLAKY).decision.outlook is Outlook.FAILED
    assert told.rows["a"].attempt == 3


def test_what_cannot_go_better_is_not_tried_again() -> None:
    flaky = transform("a", retry={"attempts": 3})
    assert story(entrypoint(), flaky, "start -> a").succeed("start").fail("a").decision.outlook is Outlook.FAILED


def test_several_ends_are_told_by_their_nodes() -> None:
    told = story(entrypoint(), transform("a"), transform("b"), "start -> a", "start -> b").succeed("start")
    told.succeed("a", 1).succeed("b", 2)
    assert told.decision.output == {"a": 1, "b": 2}


ASKED = ("start -> asked", "weather -> asked.tools")


@pytest.mark.requirement("F2")
def test_an_agent_waits_until_its_tools_are_ready() -> None:
    told = story(entrypoint(), agent("asked", tools_timeout_s=5), tool("weather"), *ASKED)
    assert told.running == {"start", "weather"}
    told.succeed("start")
    assert told.running == {"weather"}
    assert told.decision.wake_at == NOW + timedelta(seconds=5)
    assert told.succeed("weather").running == {"asked"}
    assert told.succeed("asked", "fine").decision.output == "fine"


@pytest.mark.requirement("F2")
def test_tools_that_are_not_ready_in_time_fail_the_agent_by_name() -> None:
    told = story(entrypoint(), agent("asked", tools_timeout_s=5), tool("weather"), *ASKED).succeed("start").later(5)
    assert told.decision.outlook is Outlook.FAILED
    assert told.decision.error is not None
    assert told.decision.error.code == TOOLS_NOT_READY
    assert "weather" in told.decision.error.detail


@pytest.mark.requirement("F2")
def test_a_tool_that_failed_fails_its_agent_at_once() -> None:
    told = story(entrypoint(), agent("asked"), tool("weather"), *ASKED).fail("weather")
    assert told.decision.outlook is Outlook.RUNNING
    told.succeed("start")
    assert told.decision.error is not None
    assert told.decision.error.code == TOOL_UNAVAILABLE


def test_a_run_that_only_a_person_can_move_waits() -> None:
    ask = node("ask", "human_input", prompt="?", timeout_s=60)
    told = story(entrypoint(), ask, transform("a"), "start -> ask", "start -> a").succeed("start")
    told.rows["ask"] = told.rows["ask"].waiting(due_at=NOW + timedelta(seconds=60))
    assert told.advance().decision.outlook is Outlook.RUNNING
    assert told.succeed("a").decision.outlook is Outlook.WAITING
    assert told.decision.wake_at == NOW + timedelta(seconds=60)
    told.rows["ask"] = told.rows["ask"].succeeded("yes", at=NOW)
    assert told.advance().decision.outlook is Outlook.COMPLETED


def test_nobody_waits_for_a_person_for_ever() -> None:
    told = story(entrypoint(), node("ask", "human_input", prompt="?"), "start -> ask").succeed("start")
    told.rows["ask"] = told.rows["ask"].waiting(due_at=NOW + timedelta(seconds=1))
    assert told.later(1).decision.outlook is Outlook.FAILED


@pytest.mark.requirement("F4")
def test_an_interrupted_node_is_repeated_only_if_that_does_no_harm() -> None:
    told = story(
        entrypoint(),
        node("get", "http_request", url="https://a.example"),
        node("post", "http_request", method="POST", url="https://a.example"),
        transform("end", join="any"),
        "start -> get",
        "start -> post",
        "get -> end",
        "post -> end",
    ).succeed("start")
    for node_id in sorted(told.running):
        told.rows[node_id] = told.rows[node_id].interrupted(told.plan.by_id[node_id], at=NOW)
    told.advance()
    assert told.running == {"get"}
    assert told.rows["get"].attempt == 1
    error = told.rows["post"].error
    assert error is not None
    assert error.code == OUTCOME_UNKNOWN


# --- whatever the graph, and whatever the order --------------------------------------------------


@dataclass(frozen=True)
class Fate:
    """A graph, and what each node comes to whenever it is executed."""

    plan: Plan
    outcomes: Mapping[str, str]


@st.composite
def fates(draw: st.DrawFn, joins: tuple[str, ...]) -> Fate:
    count = draw(st.integers(2, 7))
    parts: list[NodeDefinition | str] = [entrypoint("n0")]
    conditions = set()
    outcomes = {"n0": "ok"}
    for index in range(1, count):
        name = f"n{index}"
        settings = {"join": draw(st.sampled_from(joins)), "retry": {"attempts": 2, "delay_s": 1}}
        if draw(st.booleans()):
            parts.append(node(name, "condition", expression="@", **settings))
            conditions.add(name)
            outcomes[name] = draw(st.sampled_from(["true", "false", "fail"]))
        else:
            parts.append(transform(name, **settings))
            outcomes[name] = draw(st.sampled_from(["ok", "ok", "fail", "flaky"]))
        sources = draw(st.lists(st.integers(0, index - 1), min_size=1, max_size=3, unique=True))
        for source in sources:
            handle = f".{draw(st.sampled_from(['true', 'false']))}" if f"n{source}" in conditions else ""
            parts.append(f"n{source}{handle} -> {name}")
    return Fate(planned(*parts), outcomes)


def lived(fate: Fate, draw: st.DataObject) -> Story:
    """The run to its end, nodes ending in any order; every so often what is decided is lost and
    decided anew."""
    told = Story(fate.plan).advance()
    for _ in range(200):
        if told.decision.outlook in (Outlook.COMPLETED, Outlook.FAILED):
            return told
        again = decide(told.plan, dict(told.rows), now=told.now)
        assert (again.start, again.changed, again.outlook) == ((), (), told.decision.outlook)
        if not told.running:
            assert told.decision.wake_at is not None, "nothing runs and nothing is awaited"
            told.later(max(0.0, (told.decision.wake_at - told.now).total_seconds()))
            continue
        node_id = draw.draw(st.sampled_from(sorted(told.running)))
        finished = {done for done, run in told.rows.items() if run.status.is_final}
        match fate.outcomes[node_id]:
            case "ok":
                told.succeed(node_id)
            case "fail":
                told.fail(node_id)
            case "flaky":
                _ = told.fail(node_id, FLAKY) if told.rows[node_id].attempt == 1 else told.succeed(node_id)
            case handle:
                told.succeed(node_id, handle=handle)
        for run in told.decision.start:
            assert run.node_id not in finished
    raise AssertionError("the run came to no end")


@pytest.mark.requirement("F4")
@given(fates(("all", "any", "first")), st.data())
def test_every_run_comes_to_an_end_and_no_finished_node_is_started_again(fate: Fate, draw: st.DataObject) -> None:
    told = lived(fate, draw)
    for planned_node in fate.plan.nodes:
        allowed = 2 if fate.outcomes[planned_node.id] == "flaky" else 1
        assert told.starts.count(planned_node.id) <= allowed
        assert told.rows[planned_node.id].status.is_final


@given(fates(("all", "any")), st.data())
def test_whether_a_run_fails_does_not_depend_on_the_order(fate: Fate, draw: st.DataObject) -> None:
    one, other = lived(fate, draw), lived(fate, draw)
    assert one.decision.outlook is other.decision.outlook
    if one.decision.outlook is Outlook.COMPLETED:
        assert {name: run.status for name, run in one.rows.items()} == {
            name: run.status for name, run in other.rows.items()
        }


# --- bounds and what is given up ---


def test_no_more_branches_are_executed_at_once_than_there_is_room_for() -> None:
    wide = [transform(f"n{number}") for number in range(MAX_PARALLEL + 3)]
    agents = [agent(f"a{number}") for number in range(5)]
    told = story(entrypoint(), *wide, *agents, *(f"start -> {part.id}" for part in (*wide, *agents))).succeed("start")
    assert len(told.running & {part.id for part in wide}) == MAX_PARALLEL
    assert {part.id for part in agents} <= told.running
    while told.running:
        told.succeed(min(told.running))
        assert len(told.running & {part.id for part in wide}) <= MAX_PARALLEL
    assert told.decision.outlook is Outlook.COMPLETED
    assert len(told.starts) == len(set(told.starts))


def test_what_is_due_while_there_is_no_room_does_not_make_the_worker_spin() -> None:
    wide = [transform(f"n{number}") for number in range(MAX_PARALLEL + 1)]
    retried = [transform("again", retry={"attempts": 2, "delay_s": 1})]
    told = story(entrypoint(), *retried, *wide, *(f"start -> {part.id}" for part in (*retried, *wide))).succeed("start")
    told.fail("again", FLAKY)
    assert len(told.running) == MAX_PARALLEL
    told.later(2)
    assert told.decision.wake_at is None
    told.succeed("n0")
    assert "again" in told.running


@pytest.mark.requirement("F4")
def test_what_was_sent_when_its_branch_lost_may_have_had_its_effect() -> None:
    pay = node("pay", "http_request", method="POST", url="https://a.example")
    look = node("look", "http_request", url="https://a.example")
    told = story(
        entrypoint(),
        pay,
        look,
        transform("quick"),
        transform("end", join="first"),
        *("start -> pay", "start -> look", "start -> quick", "pay -> end", "look -> end", "quick -> end"),
    ).succeed("start")
    told.succeed("quick")
    assert (told.status("pay"), told.status("look")) == (NodeStatus.CANCELLED, NodeStatus.CANCELLED)
    error = told.rows["pay"].error
    assert error is not None
    assert (error.code, error.retryable) == (OUTCOME_UNKNOWN, False)
    assert told.rows["look"].error is None
    assert told.succeed("end").decision.outlook is Outlook.COMPLETED
