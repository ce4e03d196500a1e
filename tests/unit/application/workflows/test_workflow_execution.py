"""Whole workflow runs as a worker executes them, to their end and through kills, stops and waits."""

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
from tests.unit.application.workflows.workflow_house import LEASE_S, RUN, STARTED, WorkflowHouse
from tests.workflow_builders import agent, entrypoint, node, transform
from tests.workflow_changes import answer_run, stop_run


def get(node_id: str, **config: object) -> NodeDefinition:
    return node(node_id, "http_request", url="https://a.example", **config)


def post(node_id: str) -> NodeDefinition:
    return node(node_id, "http_request", method="POST", url="https://a.example")


@pytest.mark.requirement("F4")
async def test_a_run_goes_through_its_nodes_to_its_output() -> None:
    house = WorkflowHouse(
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
    await house.start({"numbers": [1, 2, 3]})
    run = await house.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "total 6")
    assert run.nodes["few"].status is NodeStatus.SKIPPED
    events = await house.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type is WorkflowEventType.COMPLETED
    actions = [entry.action for entry in house.state.audit.values()]
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
    house = WorkflowHouse(*CRASHING)
    await house.start()
    await house.killed_at(commit, before=before)
    finished = {node_id: node for node_id, node in (await house.run()).nodes.items() if node.status.is_final}
    house.told.executed.clear()
    run = await house.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "end!")
    assert set(house.told.executed).isdisjoint(finished)
    assert {node_id: run.nodes[node_id] for node_id in finished} == finished
    assert set(house.told.runs.values()) == {"run_c", "run_end"}
    events = await house.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.requirement("F4")
async def test_what_may_have_had_its_effect_is_not_repeated() -> None:
    house = WorkflowHouse(entrypoint(), post("pay"), "start -> pay")
    await house.start()
    # The second commit says that `pay` was begun, the third what became of it.
    await house.killed_at(3, before=True)
    assert house.told.executed == ["pay"]
    run = await house.advance()
    assert house.told.executed == ["pay"]
    assert run.status is WorkflowRunStatus.FAILED
    assert run.error is not None
    assert (run.error.code, run.failed_node) == (OUTCOME_UNKNOWN, "pay")


@pytest.mark.requirement("F4")
async def test_an_agents_run_is_found_again_by_the_next_worker() -> None:
    house = WorkflowHouse(entrypoint(), agent("asked"), "start -> asked")
    await house.start()
    house.told.hold("asked")
    working = asyncio.create_task(house.worker().execute(RUN))
    await asyncio.wait_for(house.told.begun["asked"].wait(), 5)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    handed_back = await house.run()
    assert (handed_back.status, handed_back.nodes["asked"].run_id) == (WorkflowRunStatus.QUEUED, "run_asked")
    assert house.told.cancelled == []
    house.told.held["asked"].set()
    run = await house.advance()
    assert (run.status, run.attempt) == (WorkflowRunStatus.COMPLETED, 2)
    assert run.nodes["asked"].run_id == "run_asked"
    assert run.nodes["asked"].attempt == 1


@pytest.mark.requirement("F4")
async def test_a_person_is_asked_and_the_answer_goes_on() -> None:
    house = WorkflowHouse(
        entrypoint(),
        node("ask", "human_input", prompt="Publish {{start.title}}?", schema={"type": "boolean"}),
        node("may", "condition", expression="@"),
        transform("out", "'published'"),
        "start -> ask",
        "ask -> may",
        "may.true -> out",
    )
    await house.start({"title": "Ulm"})
    waiting = await house.advance()
    assert waiting.status is WorkflowRunStatus.REQUIRES_ACTION
    assert waiting.nodes["ask"].asked == {"prompt": "Publish Ulm?", "schema": {"type": "boolean"}}
    await house.advance()
    assert (await house.run()) == waiting
    await answer_run(house.runs, ORG, RUN, {"ask": True}, at=house.clock.now(), audit=STARTED)
    run = await house.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "published")


async def test_nobody_is_waited_for_longer_than_the_node_says() -> None:
    house = WorkflowHouse(entrypoint(), node("ask", "human_input", prompt="?", timeout_s=60), "start -> ask")
    await house.start()
    assert (await house.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    house.clock.advance(60)
    run = await house.advance()
    assert run.status is WorkflowRunStatus.FAILED
    assert run.error is not None
    assert run.error.code == "node_timeout"


async def test_a_stop_ends_the_run_and_the_runs_of_its_agents() -> None:
    house = WorkflowHouse(entrypoint(), agent("asked"), get("slow"), "start -> asked", "start -> slow")
    await house.start()
    house.told.hold("asked")
    house.told.hold("slow")
    working = asyncio.create_task(house.worker().execute(RUN))
    for node_id in ("asked", "slow"):
        await asyncio.wait_for(house.told.begun[node_id].wait(), 5)
    await stop_run(house.runs, ORG, RUN, actor="key_x", at=house.clock.now(), audit=STARTED)
    await asyncio.wait_for(working, 5)
    run = await house.run()
    assert (run.status, run.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_x")
    assert {run.nodes[node_id].status for node_id in ("asked", "slow")} == {NodeStatus.CANCELLED}
    assert house.told.cancelled == [RunId("run_asked")]


async def test_a_join_of_the_first_stops_the_agents_that_lose() -> None:
    house = WorkflowHouse(
        entrypoint(),
        agent("slow"),
        get("quick"),
        transform("end", "'done'", join="first"),
        "start -> slow",
        "start -> quick",
        "slow -> end",
        "quick -> end",
    )
    await house.start()
    house.told.hold("slow")
    house.told.hold("quick")
    working = asyncio.create_task(house.worker().execute(RUN))
    for node_id in ("slow", "quick"):
        await asyncio.wait_for(house.told.begun[node_id].wait(), 5)
    house.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await house.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    assert run.nodes["slow"].status is NodeStatus.CANCELLED
    assert house.told.cancelled == [RunId("run_slow")]


async def test_a_failing_node_fails_the_run_with_its_error_and_node() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), transform("b"), "start -> a", "a -> b")
    house.told.outcomes["a"] = [NodeFailed("http_status", "The server answered HTTP 404.")]
    await house.start()
    run = await house.advance()
    assert (run.status, run.failed_node) == (WorkflowRunStatus.FAILED, "a")
    assert run.error is not None
    assert run.error.code == "http_status"
    assert run.nodes["b"].status is NodeStatus.SKIPPED


async def test_a_node_that_may_go_better_is_executed_again() -> None:
    flaky = get("a", retry={"attempts": 3, "delay_s": 0})
    house = WorkflowHouse(entrypoint(), flaky, "start -> a")
    busy = NodeFailed("http_status", "The server answered HTTP 503.", retryable=True)
    house.told.outcomes["a"] = [busy, busy, "fine"]
    await house.start()
    run = await house.advance()
    assert (run.status, run.output, run.nodes["a"].attempt) == (WorkflowRunStatus.COMPLETED, "fine", 3)
    begun = [event.data for event in await house.events() if event.type is WorkflowEventType.NODE_STARTED]
    assert [data["attempt"] for data in begun if data["node_id"] == "a"] == [1, 2, 3]


async def test_an_expression_that_fails_is_the_nodes_failure() -> None:
    house = WorkflowHouse(entrypoint(), transform("a", "sum(@)"), "start -> a")
    await house.start("no numbers")
    run = await house.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "expression_failed")


async def test_a_node_that_takes_too_long_is_stopped() -> None:
    house = WorkflowHouse(entrypoint(), get("a", timeout_s=0.01), "start -> a")
    house.told.hold("a")
    await house.start()
    run = await house.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "node_timeout")


async def test_a_worker_that_lost_its_lease_writes_nothing_more() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), "start -> a")
    await house.start()
    house.told.hold("a")
    working = asyncio.create_task(house.worker().execute(RUN))
    await asyncio.wait_for(house.told.begun["a"].wait(), 5)
    house.clock.advance(100)
    now = house.clock.now()
    assert await house.runs.recoverable(at=now, limit=10) == (RUN,)
    before = await house.run()
    house.told.held["a"].set()
    await asyncio.wait_for(working, 5)
    assert await house.run() == before


async def test_a_node_that_puts_out_too_much_fails() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), "start -> a")
    house.told.outcomes["a"] = ["x" * (MAX_OUTPUT_BYTES - 1)]
    await house.start()
    run = await house.advance()
    assert run.error is not None
    assert (run.status, run.error.code, run.output) == (WorkflowRunStatus.FAILED, "output_too_large", None)


async def test_an_output_in_which_one_value_stands_a_million_times_over_fails_too() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), "start -> a")
    output: JsonValue = ["x"]
    for _ in range(60):
        output = [output, output]
    house.told.outcomes["a"] = [output]
    await house.start()
    run = await house.advance()
    assert run.error is not None
    assert run.error.code == "output_too_large"


async def test_a_node_is_given_no_more_than_there_is_room_for() -> None:
    house = WorkflowHouse(entrypoint(), transform("many", "@", input=["{{start}}"] * 200), "start -> many")
    await house.start("x" * 100_000)
    run = await house.advance()
    assert run.error is not None
    assert (run.failed_node, run.error.code) == ("many", "input_too_large")


@pytest.mark.requirement("F4")
async def test_a_database_that_is_away_is_no_failure_of_a_node() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), "start -> a")
    away = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is away.")
    house.told.outcomes["a"] = [away, "done"]
    await house.start()
    with pytest.raises(ServiceError):
        await house.advance()
    assert (await house.run()).status is WorkflowRunStatus.IN_PROGRESS
    house.clock.advance(LEASE_S)
    now = house.clock.now()
    assert await house.runs.recoverable(at=now, limit=10) == (RUN,)
    run = await house.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")


@pytest.mark.requirement("E4")
async def test_a_run_whose_lease_was_lost_is_stopped_at_the_next_renewal_and_written_to_no_more() -> None:
    house = WorkflowHouse(entrypoint(), get("a"), "start -> a")
    house.told.hold("a")
    await house.start()
    working = asyncio.create_task(house.worker().execute(RUN))
    await asyncio.wait_for(house.told.begun["a"].wait(), 5)
    house.clock.advance(LEASE_S - 1)
    await house.active_runs.renew()
    house.clock.advance(LEASE_S - 1)
    assert await house.runs.recoverable(at=house.clock.now(), limit=10) == ()
    house.clock.advance(1)
    assert await house.runs.recoverable(at=house.clock.now(), limit=10) == (RUN,)
    put_back = await house.run()

    await house.active_runs.renew()
    await asyncio.wait_for(working, 5)

    assert await house.run() == put_back
    assert house.active_runs.count == 0


@pytest.mark.requirement("F4")
async def test_a_request_that_was_under_way_when_its_branch_lost_is_told_of_as_unknown_and_never_repeated() -> None:
    house = WorkflowHouse(
        entrypoint(),
        post("pay"),
        get("quick"),
        transform("end", "'done'", join="first"),
        *("start -> pay", "start -> quick", "pay -> end", "quick -> end"),
    )
    await house.start()
    house.told.hold("pay")
    house.told.hold("quick")
    working = asyncio.create_task(house.worker().execute(RUN))
    for node_id in ("pay", "quick"):
        await asyncio.wait_for(house.told.begun[node_id].wait(), 5)
    house.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await house.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    (lost,) = [event for event in await house.events() if event.type is WorkflowEventType.NODE_CANCELLED]
    assert lost.data["node_id"] == "pay"
    assert cast(dict[str, object], lost.data["error"])["code"] == OUTCOME_UNKNOWN
    assert house.told.executed.count("pay") == 1


@pytest.mark.requirement("F4")
async def test_a_stopped_run_says_of_requests_that_were_under_way_that_their_outcome_is_unknown() -> None:
    house = WorkflowHouse(entrypoint(), post("pay"), "start -> pay")
    await house.start()
    house.told.hold("pay")
    working = asyncio.create_task(house.worker().execute(RUN))
    await asyncio.wait_for(house.told.begun["pay"].wait(), 5)
    await stop_run(house.runs, ORG, RUN, actor="key_x", at=house.clock.now(), audit=STARTED)
    await asyncio.wait_for(working, 5)
    run = await house.run()
    assert run.status is WorkflowRunStatus.CANCELLED
    error = run.nodes["pay"].error
    assert error is not None
    assert error.code == OUTCOME_UNKNOWN
