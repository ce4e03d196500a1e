"""Whole workflow runs as a worker executes them, to their end and through kills, stops and
waits."""

import asyncio
from typing import cast

import pytest

from application.workflows.node_execution import NodeFailed
from application.workflows.output_bounds import MAX_OUTPUT_BYTES
from domain.errors import ErrorKind, ServiceError
from domain.ids import RunId
from domain.json_value import JsonValue
from domain.workflows.execution import OUTCOME_UNKNOWN, NodeStatus
from domain.workflows.graph import NodeDefinition
from domain.workflows.run import WorkflowEventType, WorkflowRunStatus
from tests.builders import ORG
from tests.unit.application.workflows.workflow_harness import LEASE_S, RUN, STARTED, WorkflowHarness
from tests.workflow_builders import agent, entrypoint, node, transform
from tests.workflow_changes import answer_run, stop_run


def get(node_id: str, **config: object) -> NodeDefinition:
    return node(node_id, "http_request", url="https://a.example", **config)


def post(node_id: str) -> NodeDefinition:
    return node(node_id, "http_request", method="POST", url="https://a.example")


@pytest.mark.requirement("F4")
async def test_a_run_goes_through_its_nodes_to_its_output() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        transform("numbers", "numbers"),
        node("any", "condition", expression="length(@) > `1`"),
        transform("many", "{sum: sum(@)}"),
        transform("few", "'few'"),
        transform("end", "@", input="total {{many.sum}}{{few}}"),
        "start -> numbers",
        "numbers -> any",
        "any.true -> many",
        "any.false -> few",
        "many -> end",
        "few -> end",
    )
    await harness.start({"numbers": [1, 2, 3]})
    run = await harness.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "total 6")
    assert run.nodes["few"].status is NodeStatus.SKIPPED
    events = await harness.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type is WorkflowEventType.COMPLETED
    actions = [entry.action for entry in harness.state.audit.values()]
    assert actions == ["workflow.run_started", "workflow.run_completed"]


CRASHING = (
    entrypoint(),
    get("a"),
    get("b"),
    agent("c"),
    transform("d", "'d'"),
    agent("end"),
    "start -> a",
    "start -> b",
    "a -> c",
    "b -> d",
    "c -> end",
    "d -> end",
)


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("commit", range(1, 13))
async def test_a_finished_node_is_not_executed_again_wherever_the_worker_is_killed(commit: int, before: bool) -> None:
    harness = WorkflowHarness(*CRASHING)
    await harness.start()
    await harness.killed_at(commit, before=before)
    finished = {node_id: node for node_id, node in (await harness.run()).nodes.items() if node.status.is_final}
    harness.told.executed.clear()
    run = await harness.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "end!")
    assert set(harness.told.executed).isdisjoint(finished)
    assert {node_id: run.nodes[node_id] for node_id in finished} == finished
    assert set(harness.told.runs.values()) == {"run_c", "run_end"}
    events = await harness.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.requirement("F4")
async def test_what_may_have_had_its_effect_is_not_repeated() -> None:
    harness = WorkflowHarness(entrypoint(), post("pay"), "start -> pay")
    await harness.start()
    # The second commit says that `pay` was begun, the third what became of it.
    await harness.killed_at(3, before=True)
    assert harness.told.executed == ["pay"]
    run = await harness.advance()
    assert harness.told.executed == ["pay"]
    assert run.status is WorkflowRunStatus.FAILED
    assert run.error is not None
    assert (run.error.code, run.failed_node) == (OUTCOME_UNKNOWN, "pay")


@pytest.mark.requirement("F4")
async def test_an_agents_run_is_found_again_by_the_next_worker() -> None:
    harness = WorkflowHarness(entrypoint(), agent("asked"), "start -> asked")
    await harness.start()
    harness.told.hold("asked")
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["asked"].wait(), 5)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    handed_back = await harness.run()
    assert (handed_back.status, handed_back.nodes["asked"].run_id) == (WorkflowRunStatus.QUEUED, "run_asked")
    assert harness.told.cancelled == []
    harness.told.held["asked"].set()
    run = await harness.advance()
    assert (run.status, run.attempt) == (WorkflowRunStatus.COMPLETED, 2)
    assert run.nodes["asked"].run_id == "run_asked"
    assert run.nodes["asked"].attempt == 1


@pytest.mark.requirement("F4")
async def test_a_person_is_asked_and_the_answer_goes_on() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        node("ask", "human_input", prompt="Publish {{start.title}}?", schema={"type": "boolean"}),
        node("may", "condition", expression="@"),
        transform("out", "'published'"),
        "start -> ask",
        "ask -> may",
        "may.true -> out",
    )
    await harness.start({"title": "Ulm"})
    waiting = await harness.advance()
    assert waiting.status is WorkflowRunStatus.REQUIRES_ACTION
    assert waiting.nodes["ask"].asked == {"prompt": "Publish Ulm?", "schema": {"type": "boolean"}}
    await harness.advance()
    assert (await harness.run()) == waiting
    await answer_run(harness.runs, ORG, RUN, {"ask": True}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "published")


async def test_nobody_is_waited_for_longer_than_the_node_says() -> None:
    harness = WorkflowHarness(entrypoint(), node("ask", "human_input", prompt="?", timeout_s=60), "start -> ask")
    await harness.start()
    assert (await harness.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    harness.clock.advance(60)
    run = await harness.advance()
    assert run.status is WorkflowRunStatus.FAILED
    assert run.error is not None
    assert run.error.code == "node_timeout"


async def test_a_stop_ends_the_run_and_the_runs_of_its_agents() -> None:
    harness = WorkflowHarness(entrypoint(), agent("asked"), get("slow"), "start -> asked", "start -> slow")
    await harness.start()
    harness.told.hold("asked")
    harness.told.hold("slow")
    working = asyncio.create_task(harness.worker().execute(RUN))
    for node_id in ("asked", "slow"):
        await asyncio.wait_for(harness.told.begun[node_id].wait(), 5)
    await stop_run(harness.runs, ORG, RUN, actor="key_x", at=harness.clock.now(), audit=STARTED)
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert (run.status, run.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_x")
    assert {run.nodes[node_id].status for node_id in ("asked", "slow")} == {NodeStatus.CANCELLED}
    assert harness.told.cancelled == [RunId("run_asked")]


async def test_a_join_of_the_first_stops_the_agents_that_lose() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        agent("slow"),
        get("quick"),
        transform("end", "'done'", join="first"),
        "start -> slow",
        "start -> quick",
        "slow -> end",
        "quick -> end",
    )
    await harness.start()
    harness.told.hold("slow")
    harness.told.hold("quick")
    working = asyncio.create_task(harness.worker().execute(RUN))
    for node_id in ("slow", "quick"):
        await asyncio.wait_for(harness.told.begun[node_id].wait(), 5)
    harness.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    assert run.nodes["slow"].status is NodeStatus.CANCELLED
    assert harness.told.cancelled == [RunId("run_slow")]


async def test_a_failing_node_fails_the_run_with_its_error_and_node() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), transform("b"), "start -> a", "a -> b")
    harness.told.outcomes["a"] = [NodeFailed("http_status", "The server answered HTTP 404.")]
    await harness.start()
    run = await harness.advance()
    assert (run.status, run.failed_node) == (WorkflowRunStatus.FAILED, "a")
    assert run.error is not None
    assert run.error.code == "http_status"
    assert run.nodes["b"].status is NodeStatus.SKIPPED


async def test_a_node_that_may_go_better_is_executed_again() -> None:
    flaky = get("a", retry={"attempts": 3, "delay_s": 0})
    harness = WorkflowHarness(entrypoint(), flaky, "start -> a")
    busy = NodeFailed("http_status", "The server answered HTTP 503.", retryable=True)
    harness.told.outcomes["a"] = [busy, busy, "fine"]
    await harness.start()
    run = await harness.advance()
    assert (run.status, run.output, run.nodes["a"].attempt) == (WorkflowRunStatus.COMPLETED, "fine", 3)
    begun = [event.data for event in await harness.events() if event.type is WorkflowEventType.NODE_STARTED]
    assert [data["attempt"] for data in begun if data["node_id"] == "a"] == [1, 2, 3]


async def test_an_expression_that_fails_is_the_nodes_failure() -> None:
    harness = WorkflowHarness(entrypoint(), transform("a", "sum(@)"), "start -> a")
    await harness.start("no numbers")
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "expression_failed")


async def test_a_node_that_takes_too_long_is_stopped() -> None:
    harness = WorkflowHarness(entrypoint(), get("a", timeout_s=0.01), "start -> a")
    harness.told.hold("a")
    await harness.start()
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "node_timeout")


async def test_a_worker_that_lost_its_lease_writes_nothing_more() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), "start -> a")
    await harness.start()
    harness.told.hold("a")
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["a"].wait(), 5)
    harness.clock.advance(100)
    now = harness.clock.now()
    assert await harness.runs.recoverable(at=now, limit=10) == (RUN,)
    before = await harness.run()
    harness.told.held["a"].set()
    await asyncio.wait_for(working, 5)
    assert await harness.run() == before


async def test_a_node_that_puts_out_too_much_fails() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), "start -> a")
    harness.told.outcomes["a"] = ["x" * (MAX_OUTPUT_BYTES - 1)]
    await harness.start()
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code, run.output) == (WorkflowRunStatus.FAILED, "output_too_large", None)


async def test_an_output_in_which_one_value_stands_a_million_times_over_fails_too() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), "start -> a")
    output: JsonValue = ["x"]
    for _ in range(60):
        output = [output, output]
    harness.told.outcomes["a"] = [output]
    await harness.start()
    run = await harness.advance()
    assert run.error is not None
    assert run.error.code == "output_too_large"


async def test_a_node_is_given_no_more_than_there_is_room_for() -> None:
    harness = WorkflowHarness(entrypoint(), transform("many", "@", input=["{{start}}"] * 200), "start -> many")
    await harness.start("x" * 100_000)
    run = await harness.advance()
    assert run.error is not None
    assert (run.failed_node, run.error.code) == ("many", "input_too_large")


@pytest.mark.requirement("F4")
async def test_a_database_that_is_away_is_no_failure_of_a_node() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), "start -> a")
    away = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is away.")
    harness.told.outcomes["a"] = [away, "done"]
    await harness.start()
    with pytest.raises(ServiceError):
        await harness.advance()
    assert (await harness.run()).status is WorkflowRunStatus.IN_PROGRESS
    harness.clock.advance(LEASE_S)
    now = harness.clock.now()
    assert await harness.runs.recoverable(at=now, limit=10) == (RUN,)
    run = await harness.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")


@pytest.mark.requirement("E4")
async def test_a_run_whose_lease_was_lost_is_stopped_at_the_next_renewal_and_written_to_no_more() -> None:
    harness = WorkflowHarness(entrypoint(), get("a"), "start -> a")
    harness.told.hold("a")
    await harness.start()
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["a"].wait(), 5)
    harness.clock.advance(LEASE_S - 1)
    await harness.active_runs.renew()
    harness.clock.advance(LEASE_S - 1)
    assert await harness.runs.recoverable(at=harness.clock.now(), limit=10) == ()
    harness.clock.advance(1)
    assert await harness.runs.recoverable(at=harness.clock.now(), limit=10) == (RUN,)
    put_back = await harness.run()

    await harness.active_runs.renew()
    await asyncio.wait_for(working, 5)

    assert await harness.run() == put_back
    assert harness.active_runs.count == 0


@pytest.mark.requirement("F4")
async def test_a_request_that_was_under_way_when_its_branch_lost_is_told_of_as_unknown_and_never_repeated() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        post("pay"),
        get("quick"),
        transform("end", "'done'", join="first"),
        *("start -> pay", "start -> quick", "pay -> end", "quick -> end"),
    )
    await harness.start()
    harness.told.hold("pay")
    harness.told.hold("quick")
    working = asyncio.create_task(harness.worker().execute(RUN))
    for node_id in ("pay", "quick"):
        await asyncio.wait_for(harness.told.begun[node_id].wait(), 5)
    harness.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    (lost,) = [event for event in await harness.events() if event.type is WorkflowEventType.NODE_CANCELLED]
    assert lost.data["node_id"] == "pay"
    assert cast(dict[str, object], lost.data["error"])["code"] == OUTCOME_UNKNOWN
    assert harness.told.executed.count("pay") == 1


@pytest.mark.requirement("F4")
async def test_a_stopped_run_says_of_requests_that_were_under_way_that_their_outcome_is_unknown() -> None:
    harness = WorkflowHarness(entrypoint(), post("pay"), "start -> pay")
    await harness.start()
    harness.told.hold("pay")
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["pay"].wait(), 5)
    await stop_run(harness.runs, ORG, RUN, actor="key_x", at=harness.clock.now(), audit=STARTED)
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert run.status is WorkflowRunStatus.CANCELLED
    error = run.nodes["pay"].error
    assert error is not None
    assert error.code == OUTCOME_UNKNOWN
