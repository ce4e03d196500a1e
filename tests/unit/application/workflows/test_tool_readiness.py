"""Tools of workflows becoming ready: agents wait for theirs, and nothing of them is left when their
run has ended."""

import asyncio

import pytest

from application.workflows.advance_workflow import CONTROL_REREAD_S
from application.workflows.node_execution import NodeFailed
from application.workflows.ports import workflow_control_topic, workflow_events_topic
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.execution import TOOL_UNAVAILABLE, TOOLS_NOT_READY, NodeStatus
from domain.workflows.run import WorkflowRunStatus
from tests.builders import KEY, ORG
from tests.doubles.surroundings import SequentialIds
from tests.doubles.workflow_tools import InMemoryWorkflowToolStore
from tests.unit.application.workflows.test_workflow_drivers import Rung
from tests.unit.application.workflows.workflow_harness import RUN, WorkflowHarness
from tests.workflow_builders import agent, entrypoint, node, tool

NODES = WiredNodes(workflow_run_id=RUN, node_ids=("weather", "news"))
STORY = (
    entrypoint(),
    tool("weather"),
    tool("news", "news"),
    agent("guide", tools_timeout_s=5),
    "start -> guide",
    "weather -> guide.tools",
    "news -> guide.tools",
)


async def registered(harness: WorkflowHarness) -> tuple[RegisteredTool, ...]:
    return await InMemoryWorkflowToolStore(harness.state).of(ORG, NODES)


@pytest.mark.requirement("F2")
async def test_an_agent_begins_at_the_signal_that_its_last_tool_is_ready() -> None:
    harness = WorkflowHarness(*STORY)
    harness.told.hold("news")
    harness.told.hold("guide")
    await harness.start()
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["news"].wait(), 5)
    assert "guide" not in harness.told.executed
    harness.told.held["news"].set()
    await asyncio.wait_for(harness.told.begun["guide"].wait(), CONTROL_REREAD_S / 2)
    assert [one.node_id for one in await registered(harness)] == ["weather", "news"]
    harness.told.held["guide"].set()
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert run.status is WorkflowRunStatus.COMPLETED
    assert {run.nodes[node_id].status for node_id in ("weather", "news")} == {NodeStatus.READY}


@pytest.mark.requirement("F2")
async def test_an_agent_whose_tool_cannot_be_had_fails_and_names_it() -> None:
    harness = WorkflowHarness(*STORY)
    harness.told.outcomes["news"] = [NodeFailed("mcp_server_unavailable", "The MCP server 'news' does not answer.")]
    await harness.start()
    run = await harness.advance()
    assert run.status is WorkflowRunStatus.FAILED
    assert run.error is not None
    assert (run.error.code, run.failed_node) == (TOOL_UNAVAILABLE, "guide")
    assert "news" in run.error.detail
    assert "weather" not in run.error.detail
    assert "guide" not in harness.told.executed


@pytest.mark.requirement("F2")
async def test_an_agent_waits_for_its_tools_no_longer_than_it_says() -> None:
    harness = WorkflowHarness(*STORY)
    harness.told.hold("news")
    await harness.start()
    async with harness.wakeups.subscribe(workflow_events_topic(RUN)) as bell:
        working = asyncio.create_task(harness.worker().execute(RUN))
        while "guide" not in (await harness.run()).nodes:
            await bell.wait(5)
    harness.clock.advance(6)
    harness.wakeups.wake(workflow_control_topic(RUN))
    await asyncio.wait_for(working, 5)
    run = await harness.run()
    assert run.error is not None
    assert (run.error.code, run.failed_node) == (TOOLS_NOT_READY, "guide")
    assert "news" in run.error.detail


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("commit", range(1, 6))
async def test_a_tool_that_is_ready_is_registered_wherever_the_worker_is_killed(commit: int, before: bool) -> None:
    harness = WorkflowHarness(*STORY)
    await harness.start()
    await harness.killed_at(commit, before=before)
    run = await harness.run()
    ready = {node_id for node_id, node in run.nodes.items() if node.status is NodeStatus.READY}
    if not run.status.is_terminal:
        assert {one.node_id for one in await registered(harness)} == ready
    assert (await harness.advance()).status is WorkflowRunStatus.COMPLETED
    assert await registered(harness) == ()


@pytest.mark.requirement("F6")
async def test_a_run_that_ends_takes_its_tools_along_and_no_others() -> None:
    harness, other = WorkflowHarness(*STORY), WorkflowHarness(*STORY)
    for one in (harness, other):
        one.told.hold("guide")
        await one.start()
    both = [asyncio.create_task(one.worker().execute(RUN)) for one in (harness, other)]
    for one in (harness, other):
        await asyncio.wait_for(one.told.begun["guide"].wait(), 5)
    harness.told.held["guide"].set()
    await asyncio.wait_for(both[0], 5)
    assert await registered(harness) == ()
    assert harness.registering.released == [RUN]
    assert len(await registered(other)) == 2
    assert other.registering.released == []
    other.told.held["guide"].set()
    await asyncio.wait_for(both[1], 5)


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("outcome", [None, NodeFailed("agent_run_failed", "It failed.")])
async def test_however_a_run_ends_its_tools_are_gone(outcome: NodeFailed | None) -> None:
    harness = WorkflowHarness(*STORY)
    if outcome is not None:
        harness.told.outcomes["guide"] = [outcome]
    await harness.start()
    assert (await harness.advance()).status.is_terminal
    assert await registered(harness) == ()
    assert harness.registering.released == [RUN]


@pytest.mark.requirement("F6")
async def test_a_stop_that_ends_a_waiting_run_lets_go_of_its_tools() -> None:
    harness = WorkflowHarness(*STORY, node("ask", "human_input", prompt="?"), "guide -> ask")
    await harness.start()
    assert (await harness.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    assert len(await registered(harness)) == 2
    stop = StopWorkflowRun(
        runs=harness.runs,
        queue=Rung(),
        tools=harness.registering,
        clock=harness.clock,
        ids=SequentialIds(),
        tracer=harness.tracer,
    )
    operator = Principal(key_id=KEY, organization_id=ORG, role=Role.OPERATOR)
    stopped = await stop.execute(StopWorkflowRunCommand(principal=operator, run_id=RUN))
    assert stopped.status is WorkflowRunStatus.CANCELLED
    assert await registered(harness) == ()
    assert harness.registering.released == [RUN]
