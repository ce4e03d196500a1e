"""Agents called as tools: one run for one call, whenever it is made, and what becomes of it when
its caller gives up."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from application.mcp.ports import McpProgress
from application.runs.call_agent import CallAgent
from application.runs.cancel_run import CancelRun
from application.runs.new_run import KEY_LIFETIME
from application.runs.stop_run import StopRun
from application.tools.agent_calls import AgentCall, AgentCaller
from domain.errors import ServiceError
from domain.identity.role import Role as KeyRole
from domain.ids import AgentId, GatewaySessionId, ToolCallId
from domain.json_value import JsonValue
from domain.runs.lane import Lane
from domain.runs.run import RunStatus
from domain.tools.tool import AgentBinding
from tests.builders import THREAD, a_thread
from tests.doubles.state import StoredThread
from tests.doubles.threads import InMemoryThreadStore
from tests.refusals import refused
from tests.unit.application.runs.doubles import OneEventAtATime, asks, says
from tests.unit.application.runs.harness import ADMIN, RunHarness

CALLER = AgentCaller(
    principal=replace(ADMIN, role=KeyRole.RUNNER, teams=None),
    gateway_session_id=GatewaySessionId("gws_1"),
    agent_id=AgentId("agt_caller"),
    thread_id=THREAD,
    waits=False,
)
ASKED: Mapping[str, JsonValue] = {"input": "What time is it?"}


def calling(harness: RunHarness, *, suspended_wait_s: float = 0.0) -> CallAgent:
    runs, queue, clock = harness.runs, harness.queue, harness.clock
    stop_run = StopRun(
        runs=runs, queue=queue, connections=harness.connections, trace_ended=harness.trace_ended, clock=clock
    )
    return CallAgent(
        start_run=harness.start_run(),
        cancel_run=CancelRun(runs=runs, stop_run=stop_run),
        runs=runs,
        threads=InMemoryThreadStore(harness.state),
        wakeups=harness.wakeups,
        clock=clock,
        suspended_wait_s=suspended_wait_s,
    )


def a_call(
    harness: RunHarness, arguments: Mapping[str, JsonValue] = ASKED, *, caller: AgentCaller = CALLER
) -> AgentCall:
    return AgentCall(
        caller=caller,
        agent=AgentBinding(agent_id=harness.agent.id, name="researcher", timeout_s=60.0),
        tool_call_id=ToolCallId("call_1"),
        arguments=dict(arguments),
        timeout_s=60.0,
    )


@pytest.mark.requirement("F5", "E3")
async def test_a_call_has_one_run_however_late_it_is_made_again() -> None:
    harness = RunHarness()
    agents = calling(harness)
    first = await agents.begun(a_call(harness))
    assert await agents.begun(a_call(harness)) == first
    harness.clock.advance(KEY_LIFETIME.total_seconds() + 1)
    assert await agents.begun(a_call(harness)) == first
    assert list(harness.state.runs) == [first.id]
    another = replace(a_call(harness), agent=AgentBinding(agent_id=AgentId("agt_2"), name="writer", timeout_s=60.0))
    with pytest.raises(ServiceError) as refused:
        await agents.begun(another)  # whose policies did not decide about that run
    assert refused.value.code == "idempotency_key_reused"
    elsewhere = replace(CALLER, gateway_session_id=GatewaySessionId("gws_2"))
    assert (await agents.begun(a_call(harness, caller=elsewhere))).id != first.id


@pytest.mark.requirement("F5", "K2")
async def test_a_call_that_finds_no_place_in_the_queue_says_when_to_try_again_however_deep_it_claims_to_be() -> None:
    harness = RunHarness()
    agents = calling(harness)
    harness.change_agent(max_queued=1, lane=Lane.BATCH)
    first = await agents.begun(a_call(harness))
    assert first.lane is Lane.BATCH
    deeper = replace(CALLER, depth=2, retry_key="again")
    answer = await agents.call(a_call(harness, caller=deeper))
    assert answer.result.error_code == "queue_full"
    assert "Try again in" in answer.result.text
    assert list(harness.state.runs) == [first.id]


@pytest.mark.requirement("F5", "A12")
async def test_a_call_that_is_given_up_while_its_run_is_stored_leaves_no_run_behind() -> None:
    harness = RunHarness()
    calling_it = asyncio.create_task(calling(harness).call(a_call(harness)))
    await asyncio.sleep(0)
    calling_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling_it
    assert {stored.run.status for stored in harness.state.runs.values()} == {RunStatus.CANCELLED}


@pytest.mark.requirement("F5")
async def test_asking_for_the_answer_of_a_run_and_giving_up_leaves_the_run_alone() -> None:
    harness = RunHarness()
    agents = calling(harness)
    run = await agents.begun(a_call(harness))
    waiting = a_call(harness, {"run_id": run.id}, caller=replace(CALLER, waits=True))
    asking = asyncio.create_task(agents.call(waiting))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert harness.run(run.id).status is RunStatus.QUEUED


@pytest.mark.requirement("F5")
async def test_progress_is_told_from_events_of_which_large_messages_cut_pages_short() -> None:
    harness = RunHarness([asks("now"), says()])
    run = await calling(harness).begun(a_call(harness))
    await harness.worker.execute(run.id)

    async def told() -> list[str | None]:
        messages: list[str | None] = []

        async def tell(progress: McpProgress) -> None:
            messages.append(progress.message)

        call = a_call(harness, {"run_id": run.id}, caller=replace(CALLER, waits=True))
        await calling(harness).call(replace(call, on_progress=tell))
        return messages

    whole = await told()
    harness.runs = OneEventAtATime(harness.state, harness.wakeups)
    assert len(whole) > 1
    assert await told() == whole


@pytest.mark.requirement("P2")
async def test_the_run_of_an_agent_of_the_organization_belongs_to_the_team_that_called_it() -> None:
    harness = RunHarness()
    harness.state.threads[THREAD] = StoredThread(thread=replace(a_thread(), team="finance"))
    run = await calling(harness).begun(a_call(harness))
    assert run.team == harness.state.threads[run.thread_id].thread.team == "finance"
    assert await calling(harness).begun(a_call(harness)) == run
    harness.change_agent(team="others")
    with refused("agent_not_found"):
        await calling(harness).begun(a_call(harness, caller=replace(CALLER, retry_key="another")))
    del harness.state.threads[THREAD]
    with refused("thread_not_found"):
        await calling(harness).begun(a_call(harness, caller=replace(CALLER, retry_key="third")))


@pytest.mark.requirement("P2")
async def test_an_agent_that_was_given_to_a_team_after_it_became_a_tool_is_not_called_by_others() -> None:
    harness = RunHarness()
    harness.change_agent(team="finance")
    with refused("agent_not_found"):
        await calling(harness).begun(a_call(harness))
    assert harness.state.runs == {}
    harness.state.threads[THREAD] = StoredThread(thread=replace(a_thread(), team="finance"))
    assert (await calling(harness).begun(a_call(harness))).team == "finance"
