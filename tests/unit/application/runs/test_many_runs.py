"""Two hundred runs at once on one worker: each ends as if it were alone."""

import asyncio
from collections import Counter

import pytest

from application.mcp.ports import McpReply
from application.models.ports import ModelRequest, TextDelta
from domain.ids import RunId, ThreadId
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from infrastructure.jobs.embedded import InProcessRunQueue
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import call, says
from tests.unit.application.runs.harness import ADMIN, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

RUNS = 200
THREADS = 150
"""Fewer than runs, so that some threads have a second run waiting."""


def script(request: ModelRequest) -> ModelTurn:
    """Two turns with three calls each, then an answer that names the run."""
    if request.turn > 2:
        return ModelTurn(text=request.run_id, events=tuple(TextDelta(text=piece) for piece in ("So: ", "it is ")))
    echo = call("mcp__s__echo", {"text": f"{request.run_id} {request.turn}"})
    return ModelTurn(text="Asking.", calls=(echo, call("nowhere"), echo))


async def echo(invocation: Invocation) -> McpReply:
    await asyncio.sleep(0)
    return text_reply(str(invocation.arguments["text"]))


@pytest.mark.requirement("A4", "E1", "E2", "E3", "E5")
async def test_two_hundred_concurrent_runs_finish_with_gapless_events_and_every_call_answered_once() -> None:
    harness = RunHarness(
        script,
        servers={"s": InMemoryMcpServer(tools={"echo": InMemoryTool(answer=echo)})},
        limits=LimitSettings(max_turns=5),
    )
    await harness.warm_up()
    queue = InProcessRunQueue()
    harness.queue.submit = queue.submit  # type: ignore[method-assign]  # rung for at once instead of noted
    consuming = asyncio.create_task(queue.consume(harness.worker.execute, concurrency=RUNS))

    run_ids: list[RunId] = []
    threads: list[ThreadId] = []
    for number in range(RUNS):
        reused = threads[number - THREADS] if number >= THREADS else None
        run_ids.append(await harness.start(f"number {number}", thread_id=reused))
        threads.append(harness.run(run_ids[-1]).thread_id)
    followed = [
        [event.seq async for events in harness.watch.follow(ADMIN, run_id) for event in events]
        for run_id in run_ids[:3]
    ]
    for run_id in run_ids:
        assert (await harness.watch.wait(ADMIN, run_id)).run.output == run_id

    assert await queue.drain(30)
    await consuming
    assert_consistent(harness, *run_ids)
    assert {harness.run(run_id).status for run_id in run_ids} == {RunStatus.COMPLETED}
    for run_id, seqs in zip(run_ids, followed, strict=False):
        assert seqs == [event.seq for event in harness.events(run_id)]
    for run_id in run_ids:
        results = [entry.result.text for entry in harness.ledger(run_id) if entry.result and entry.name != "nowhere"]
        assert results == [f"{run_id} 1", f"{run_id} 1", f"{run_id} 2", f"{run_id} 2"]
    sent = Counter(
        recorded.call.meta["dragoman/idempotency-key"] for recorded in harness.connections.calls if recorded.call.meta
    )
    assert set(sent.values()) == {1}
    assert harness.wakeups.topic_count == 0
    assert harness.worker.active_runs.count == 0
    assert not asyncio.all_tasks() - {asyncio.current_task()}


@pytest.mark.requirement("A12", "E7")
async def test_a_worker_that_stops_leaves_a_hundred_runs_to_another_without_repeating_a_call() -> None:
    harness = RunHarness(script, servers={"s": InMemoryMcpServer(tools={"echo": InMemoryTool(answer=echo)})})
    await harness.warm_up()
    run_ids = [await harness.start(f"number {number}", thread_id=None) for number in range(100)]
    executing = [harness.worker.begin(run_id) for run_id in run_ids]
    await harness.until(run_ids[50], lambda: "tool.executed" in harness.types(run_ids[50]))
    harness.worker.active_runs.stop_all()
    await asyncio.gather(*executing)
    assert RunStatus.QUEUED in {harness.run(run_id).status for run_id in run_ids}
    other = harness.new_worker()
    await asyncio.gather(*[other.execute(run_id) for run_id in run_ids])
    assert {harness.run(run_id).status for run_id in run_ids} == {RunStatus.COMPLETED}
    assert_consistent(harness, *run_ids)
    sent = Counter(
        recorded.call.meta["dragoman/idempotency-key"] for recorded in harness.connections.calls if recorded.call.meta
    )
    assert set(sent.values()) == {1}


async def test_a_run_of_two_hundred_turns_answers_every_call() -> None:
    turns = [ModelTurn(calls=(call("mcp__s__echo", {"text": str(number)}),)) for number in range(199)]
    harness = RunHarness(
        [*turns, says()],
        servers={"s": InMemoryMcpServer(tools={"echo": InMemoryTool(answer=echo)})},
        limits=LimitSettings(max_turns=500),
    )
    run_id = await harness.play()
    assert harness.run(run_id).usage.turns == 200
    assert_consistent(harness, run_id)
