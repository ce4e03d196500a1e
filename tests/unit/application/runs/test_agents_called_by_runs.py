"""Agents that runs call as tools: their runs are admitted, executed beside their callers, and
outlive a worker that stops."""

import asyncio
from dataclasses import replace

import pytest

from application.runs.call_agent import CallAgent
from application.runs.called_runs import CalledRuns
from application.runs.cancel_run import CancelRun
from application.runs.start_run import StartRunCommand
from application.runs.stop_run import StopRun
from application.tools.agent_calls import AgentCaller
from domain.identity.role import Role
from domain.ids import AgentId, RunId
from domain.runs.called_by import CalledBy
from domain.runs.run import RunStatus
from domain.threads.message import TextContent
from tests.builders import THREAD
from tests.doubles.threads import InMemoryThreadStore
from tests.refusals import refused
from tests.unit.application.runs.doubles import says
from tests.unit.application.runs.harness import ADMIN, RunHarness
from tests.unit.application.runs.test_calling_agents import a_call

CALLER = AgentCaller(
    principal=replace(ADMIN, role=Role.RUNNER),
    agent_id=AgentId("agt_caller"),
    thread_id=THREAD,
    run_id=RunId("run_caller"),
    depth=0,
)

pytestmark = pytest.mark.requirement("F5")


def calling(harness: RunHarness, called_runs: CalledRuns | None = None) -> CallAgent:
    runs, clock = harness.runs, harness.clock
    stop_run = StopRun(
        runs=runs, queue=harness.queue, connections=harness.connections, trace_ended=harness.trace_ended, clock=clock
    )
    return CallAgent(
        start_run=harness.start_run(),
        cancel_run=CancelRun(runs=runs, stop_run=stop_run),
        runs=runs,
        threads=InMemoryThreadStore(harness.state),
        wakeups=harness.wakeups,
        clock=clock,
        called_runs=called_runs,
    )


async def test_a_called_run_is_admitted_though_the_queue_is_full_and_says_which_run_called_it() -> None:
    harness = RunHarness()
    harness.change_agent(max_queued=1)
    await harness.start()
    run = await calling(harness).begun(a_call(harness, caller=CALLER))
    assert CalledBy.of(run.metadata) == CalledBy(
        run_id=CALLER.run_id, tool_call_id=a_call(harness).tool_call_id, depth=1, agent_id=CALLER.agent_id
    )
    assert await calling(harness).begun(a_call(harness, caller=CALLER)) == run, "a call that is made again"


@pytest.mark.requirement("K2")
async def test_no_client_says_that_a_run_called_its_run() -> None:
    harness = RunHarness()
    told = CalledBy(run_id=CALLER.run_id, tool_call_id=a_call(harness).tool_call_id, depth=1)
    command = StartRunCommand(
        principal=ADMIN, agent=harness.agent.id, input=(TextContent(text="Hi"),), metadata=told.metadata()
    )
    with refused("metadata_reserved"):
        await harness.start_run().execute(command)
    assert harness.state.runs == {}


async def test_a_called_run_is_executed_for_its_caller_while_no_worker_has_it() -> None:
    harness = RunHarness([says("It is noon.")])
    called_runs = CalledRuns()
    called_runs.attend(harness.worker.execute)
    reply = await calling(harness, called_runs).call(a_call(harness, caller=CALLER))
    assert (reply.result.is_error, reply.result.text) == (False, "It is noon.")
    assert await called_runs.drain(60)


@pytest.mark.parametrize(("moves", "status"), [(True, RunStatus.QUEUED), (False, RunStatus.CANCELLED)])
async def test_a_caller_that_moves_to_another_worker_leaves_its_run_and_one_that_ends_does_not(
    moves: bool, status: RunStatus
) -> None:
    harness = RunHarness()
    caller = replace(CALLER, moves=lambda: moves)
    calling_it = asyncio.create_task(calling(harness).call(a_call(harness, caller=caller)))
    await asyncio.sleep(0)
    calling_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling_it
    for _ in range(20):  # what it began goes on being stored
        await asyncio.sleep(0)
    assert [stored.run.status for stored in harness.state.runs.values()] == [status]


async def test_only_the_caller_has_the_answer_of_its_run_later() -> None:
    harness = RunHarness()
    run = await calling(harness).begun(a_call(harness, caller=CALLER))
    named = a_call(harness, {"run_id": run.id}, caller=CALLER)
    assert await calling(harness).begun(named) == run
    with refused("run_not_found"):
        await calling(harness).begun(replace(named, caller=replace(CALLER, run_id=RunId("run_other"))))
