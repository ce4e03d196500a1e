"""Workflow runs whose agents wait for somebody: at rest meanwhile, and on with the agent's run,
wherever that goes."""

import asyncio
from datetime import timedelta

import pytest

from application.workflows.node_execution import AwaitsAnswer
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.workflows.execution import NodeStatus
from domain.workflows.run import WorkflowEventType, WorkflowRunStatus
from tests.builders import ORG
from tests.unit.application.workflows.workflow_harness import RUN, STARTED, WorkflowHarness
from tests.workflow_builders import agent, entrypoint, node
from tests.workflow_changes import answer_run, stop_run

ASKED: JsonObject = {"calls": [{"type": "tool_use", "id": "call_1", "name": "pay", "params": {}}]}
THEN: JsonObject = {"calls": [{"type": "tool_use", "id": "call_2", "name": "pay", "params": {}}]}
RUN_OF_AGENT = RunId("run_buyer")


def asks(asked: JsonObject = ASKED, *, seq: int = 7) -> AwaitsAnswer:
    return AwaitsAnswer(asked=asked, due_at=None, run_seq=seq)


async def a_waiting_harness() -> WorkflowHarness:
    harness = WorkflowHarness(entrypoint(), agent("buyer"), "start -> buyer")
    harness.told.outcomes["buyer"] = [asks(), "bought"]
    await harness.start()
    assert (await harness.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    return harness


async def types(harness: WorkflowHarness) -> list[WorkflowEventType]:
    return [event.type for event in await harness.events()]


@pytest.mark.requirement("F4")
async def test_a_run_whose_agent_waits_says_for_what_and_nobody_works_on_it() -> None:
    harness = await a_waiting_harness()
    run = await harness.run()
    (waiting,) = run.waiting_nodes
    assert (waiting.node_id, waiting.run_id, waiting.asked, waiting.run_seq) == ("buyer", RUN_OF_AGENT, ASKED, 7)
    events = await harness.events()
    assert [event.type for event in events[-2:]] == [
        WorkflowEventType.NODE_WAITING,
        WorkflowEventType.REQUIRES_ACTION,
    ]
    assert events[-1].data == {"pending": [{"node_id": "buyer", "run_id": RUN_OF_AGENT, "asked": ASKED}]}
    assert harness.told.cancelled == []


@pytest.mark.requirement("F4")
async def test_it_goes_on_with_the_same_run_of_the_agent() -> None:
    harness = await a_waiting_harness()
    harness.told.move_on(RUN_OF_AGENT, 9)
    await answer_run(harness.runs, ORG, RUN, {}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "bought")
    assert (run.nodes["buyer"].attempt, run.nodes["buyer"].run_id) == (1, RUN_OF_AGENT)
    assert (await types(harness))[-4:] == [
        WorkflowEventType.RESUMED,
        WorkflowEventType.NODE_RESUMED,
        WorkflowEventType.NODE_SUCCEEDED,
        WorkflowEventType.COMPLETED,
    ]


async def test_an_agent_that_waits_for_something_else_by_now_is_told_of_again() -> None:
    harness = await a_waiting_harness()
    harness.told.outcomes["buyer"] = [asks(THEN, seq=9), "bought"]
    harness.told.move_on(RUN_OF_AGENT, 9)
    await answer_run(harness.runs, ORG, RUN, {}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert run.status is WorkflowRunStatus.REQUIRES_ACTION
    assert run.nodes["buyer"].asked == THEN
    assert (await types(harness)).count(WorkflowEventType.NODE_WAITING) == 2


async def test_a_run_that_is_taken_up_while_its_agent_still_waits_rests_again_and_tells_nothing() -> None:
    harness = await a_waiting_harness()
    before = await types(harness)
    await answer_run(harness.runs, ORG, RUN, {}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert run.status is WorkflowRunStatus.REQUIRES_ACTION
    assert (await types(harness))[len(before) :] == [WorkflowEventType.RESUMED, WorkflowEventType.REQUIRES_ACTION]
    assert harness.told.executed.count("buyer") == 1


@pytest.mark.requirement("F4")
async def test_an_agent_goes_on_while_other_branches_are_under_way() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        agent("buyer"),
        node("slow", "http_request", url="https://a.example"),
        "start -> buyer",
        "start -> slow",
    )
    harness.told.outcomes["buyer"] = [asks(), "bought"]
    harness.told.hold("slow")
    await harness.start()
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["slow"].wait(), 5)
    async with harness.wakeups.subscribe(f"workflow.events:{RUN}") as bell:
        while WorkflowEventType.NODE_WAITING not in await types(harness):
            assert await bell.wait(5)
        assert (await harness.run()).status is WorkflowRunStatus.IN_PROGRESS
        harness.told.move_on(RUN_OF_AGENT, 9)
        while await harness.status("buyer") is not NodeStatus.SUCCEEDED:
            assert await bell.wait(5)
    harness.told.held["slow"].set()
    await asyncio.wait_for(working, 5)
    assert (await harness.run()).output == {"buyer": "bought", "slow": "slow!"}


@pytest.mark.requirement("F4")
async def test_stopping_it_stops_the_agents_run() -> None:
    harness = await a_waiting_harness()
    await stop_run(harness.runs, ORG, RUN, actor="key_x", at=harness.clock.now(), audit=STARTED)
    assert harness.told.cancelled == []
    run = await harness.advance()
    assert (run.status, run.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_x")
    assert run.nodes["buyer"].status is NodeStatus.CANCELLED
    assert harness.told.cancelled == [RUN_OF_AGENT]
    assert (await types(harness))[-2:] == [WorkflowEventType.NODE_CANCELLED, WorkflowEventType.CANCELLED]


async def test_nobody_is_waited_for_longer_than_the_node_says_and_the_agents_run_is_stopped_then() -> None:
    harness = WorkflowHarness(entrypoint(), agent("buyer", timeout_s=60), "start -> buyer")
    due_at = harness.clock.now() + timedelta(seconds=60)
    harness.told.outcomes["buyer"] = [AwaitsAnswer(asked=None, due_at=due_at, run_seq=7)]
    await harness.start()
    assert (await harness.advance()).wake_at == due_at
    harness.clock.advance(60)
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "node_timeout")
    assert harness.told.cancelled == [RUN_OF_AGENT]


async def test_an_agent_that_takes_too_long_is_stopped_before_it_is_tried_again() -> None:
    harness = WorkflowHarness(
        entrypoint(), agent("buyer", timeout_s=0.01, retry={"attempts": 2, "delay_s": 0}), "start -> buyer"
    )
    harness.told.hold("buyer")
    await harness.start()
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code, run.nodes["buyer"].attempt) == (WorkflowRunStatus.FAILED, "node_timeout", 2)
    assert harness.told.cancelled[:2] == [RUN_OF_AGENT, RUN_OF_AGENT]


async def test_a_branch_that_loses_while_its_agent_waits_has_that_run_stopped() -> None:
    harness = WorkflowHarness(
        entrypoint(),
        agent("buyer"),
        node("quick", "http_request", url="https://a.example"),
        node("end", "transform", expression="'done'", join="first"),
        "start -> buyer",
        "start -> quick",
        "buyer -> end",
        "quick -> end",
    )
    harness.told.outcomes["buyer"] = [asks()]
    harness.told.hold("quick")
    await harness.start()
    working = asyncio.create_task(harness.worker().execute(RUN))
    async with harness.wakeups.subscribe(f"workflow.events:{RUN}") as bell:
        while WorkflowEventType.NODE_WAITING not in await types(harness):
            assert await bell.wait(5)
    harness.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    assert run.nodes["buyer"].status is NodeStatus.CANCELLED
    assert harness.told.cancelled == [RUN_OF_AGENT]
