"""Workflow runs whose agents wait for somebody: at rest meanwhile, and on with the agent's run, wherever that goes."""

import asyncio
from datetime import timedelta

import pytest

from application.workflows.node_execution import AwaitsAnswer
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.workflows.execution import NodeStatus
from domain.workflows.run import WorkflowEventType, WorkflowRunStatus
from tests.builders import ORG
from tests.unit.application.workflows.workflow_house import RUN, STARTED, WorkflowHouse
from tests.workflow_builders import agent, entrypoint, node
from tests.workflow_changes import answer_run, stop_run

ASKED: JsonObject = {"calls": [{"type": "tool_use", "id": "call_1", "name": "pay", "params": {}}]}
THEN: JsonObject = {"calls": [{"type": "tool_use", "id": "call_2", "name": "pay", "params": {}}]}
RUN_OF_AGENT = RunId("run_buyer")


def asks(asked: JsonObject = ASKED, *, seq: int = 7) -> AwaitsAnswer:
    return AwaitsAnswer(asked=asked, due_at=None, run_seq=seq)


async def a_waiting_house() -> WorkflowHouse:
    house = WorkflowHouse(entrypoint(), agent("buyer"), "start -> buyer")
    house.told.outcomes["buyer"] = [asks(), "bought"]
    await house.start()
    assert (await house.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    return house


async def types(house: WorkflowHouse) -> list[WorkflowEventType]:
    return [event.type for event in await house.events()]


@pytest.mark.requirement("F4")
async def test_a_run_whose_agent_waits_says_for_what_and_nobody_works_on_it() -> None:
    house = await a_waiting_house()
    run = await house.run()
    (waiting,) = run.waiting_nodes
    assert (waiting.node_id, waiting.run_id, waiting.asked, waiting.run_seq) == ("buyer", RUN_OF_AGENT, ASKED, 7)
    events = await house.events()
    assert [event.type for event in events[-2:]] == [
        WorkflowEventType.NODE_WAITING,
        WorkflowEventType.REQUIRES_ACTION,
    ]
    assert events[-1].data == {"pending": [{"node_id": "buyer", "run_id": RUN_OF_AGENT, "asked": ASKED}]}
    assert house.told.cancelled == []


@pytest.mark.requirement("F4")
async def test_it_goes_on_with_the_same_run_of_the_agent() -> None:
    house = await a_waiting_house()
    house.told.move_on(RUN_OF_AGENT, 9)
    await answer_run(house.runs, ORG, RUN, {}, at=house.clock.now(), audit=STARTED)
    run = await house.advance()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "bought")
    assert (run.nodes["buyer"].attempt, run.nodes["buyer"].run_id) == (1, RUN_OF_AGENT)
    assert (await types(house))[-4:] == [
        WorkflowEventType.RESUMED,
        WorkflowEventType.NODE_RESUMED,
        WorkflowEventType.NODE_SUCCEEDED,
        WorkflowEventType.COMPLETED,
    ]


async def test_an_agent_that_waits_for_something_else_by_now_is_told_of_again() -> None:
    house = await a_waiting_house()
    house.told.outcomes["buyer"] = [asks(THEN, seq=9), "bought"]
    house.told.move_on(RUN_OF_AGENT, 9)
    await answer_run(house.runs, ORG, RUN, {}, at=house.clock.now(), audit=STARTED)
    run = await house.advance()
    assert run.status is WorkflowRunStatus.REQUIRES_ACTION
    assert run.nodes["buyer"].asked == THEN
    assert (await types(house)).count(WorkflowEventType.NODE_WAITING) == 2


async def test_a_run_that_is_taken_up_while_its_agent_still_waits_rests_again_and_tells_nothing() -> None:
    house = await a_waiting_house()
    before = await types(house)
    await answer_run(house.runs, ORG, RUN, {}, at=house.clock.now(), audit=STARTED)
    run = await house.advance()
    assert run.status is WorkflowRunStatus.REQUIRES_ACTION
    assert (await types(house))[len(before) :] == [WorkflowEventType.RESUMED, WorkflowEventType.REQUIRES_ACTION]
    assert house.told.executed.count("buyer") == 1


@pytest.mark.requirement("F4")
async def test_an_agent_goes_on_while_other_branches_are_under_way() -> None:
    house = WorkflowHouse(
        entrypoint(),
        agent("buyer"),
        node("slow", "http_request", url="https://a.example"),
        "start -> buyer",
        "start -> slow",
    )
    house.told.outcomes["buyer"] = [asks(), "bought"]
    house.told.hold("slow")
    await house.start()
    working = asyncio.create_task(house.worker().execute(RUN))
    await asyncio.wait_for(house.told.begun["slow"].wait(), 5)
    async with house.wakeups.subscribe(f"workflow.events:{RUN}") as bell:
        while WorkflowEventType.NODE_WAITING not in await types(house):
            assert await bell.wait(5)
        assert (await house.run()).status is WorkflowRunStatus.IN_PROGRESS
        house.told.move_on(RUN_OF_AGENT, 9)
        while await house.status("buyer") is not NodeStatus.SUCCEEDED:
            assert await bell.wait(5)
    house.told.held["slow"].set()
    await asyncio.wait_for(working, 5)
    assert (await house.run()).output == {"buyer": "bought", "slow": "slow!"}


@pytest.mark.requirement("F4")
async def test_stopping_it_stops_the_agents_run() -> None:
    house = await a_waiting_house()
    await stop_run(house.runs, ORG, RUN, actor="key_x", at=house.clock.now(), audit=STARTED)
    assert house.told.cancelled == []
    run = await house.advance()
    assert (run.status, run.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_x")
    assert run.nodes["buyer"].status is NodeStatus.CANCELLED
    assert house.told.cancelled == [RUN_OF_AGENT]
    assert (await types(house))[-2:] == [WorkflowEventType.NODE_CANCELLED, WorkflowEventType.CANCELLED]


async def test_nobody_is_waited_for_longer_than_the_node_says_and_the_agents_run_is_stopped_then() -> None:
    house = WorkflowHouse(entrypoint(), agent("buyer", timeout_s=60), "start -> buyer")
    due_at = house.clock.now() + timedelta(seconds=60)
    house.told.outcomes["buyer"] = [AwaitsAnswer(asked=None, due_at=due_at, run_seq=7)]
    await house.start()
    assert (await house.advance()).wake_at == due_at
    house.clock.advance(60)
    run = await house.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "node_timeout")
    assert house.told.cancelled == [RUN_OF_AGENT]


async def test_an_agent_that_takes_too_long_is_stopped_before_it_is_tried_again() -> None:
    house = WorkflowHouse(
        entrypoint(), agent("buyer", timeout_s=0.01, retry={"attempts": 2, "delay_s": 0}), "start -> buyer"
    )
    house.told.hold("buyer")
    await house.start()
    run = await house.advance()
    assert run.error is not None
    assert (run.status, run.error.code, run.nodes["buyer"].attempt) == (WorkflowRunStatus.FAILED, "node_timeout", 2)
    assert house.told.cancelled[:2] == [RUN_OF_AGENT, RUN_OF_AGENT]


async def test_a_branch_that_loses_while_its_agent_waits_has_that_run_stopped() -> None:
    house = WorkflowHouse(
        entrypoint(),
        agent("buyer"),
        node("quick", "http_request", url="https://a.example"),
        node("end", "transform", expression="'done'", join="first"),
        "start -> buyer",
        "start -> quick",
        "buyer -> end",
        "quick -> end",
    )
    house.told.outcomes["buyer"] = [asks()]
    house.told.hold("quick")
    await house.start()
    working = asyncio.create_task(house.worker().execute(RUN))
    async with house.wakeups.subscribe(f"workflow.events:{RUN}") as bell:
        while WorkflowEventType.NODE_WAITING not in await types(house):
            assert await bell.wait(5)
    house.told.held["quick"].set()
    await asyncio.wait_for(working, 5)
    run = await house.run()
    assert (run.status, run.output) == (WorkflowRunStatus.COMPLETED, "done")
    assert run.nodes["buyer"].status is NodeStatus.CANCELLED
    assert house.told.cancelled == [RUN_OF_AGENT]
