"""Stopping a run from outside: cancelled, drained, cut short, or fenced off; writes are never
cut."""

import asyncio

import pytest

from application.mcp.ports import McpReply
from application.tools.ports import NativeToolContext, NativeToolOutput
from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.run import Run, RunStatus
from domain.threads.message import Role
from tests.builders import OTHER_WORKER
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.doubles import HeldServer, InMemoryNativeTool, asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent


async def begun(harness: RunHarness, gate: Gate) -> "tuple[Run, asyncio.Task[None]]":
    """A run whose execution has reached the gate."""
    await harness.warm_up()
    run_id = await harness.start()
    executing = harness.worker.begin(run_id)
    await gate.reached.wait()
    return harness.run(run_id), executing


@pytest.mark.requirement("A12")
async def test_cancelling_during_a_model_call_ends_the_call_and_the_run() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="I was go", gate=gate)])
    run, executing = await begun(harness, gate)
    assert (await harness.cancel(run.id)).cancel_requested_by
    await executing
    assert harness.run(run.id).status is RunStatus.CANCELLED
    assert harness.model.cancelled == 1
    assert harness.types(run.id)[-3:] == ["message.delta", "message.discarded", "run.cancelled"]
    assert [entry.action.value for entry in harness.audit(run.id)] == ["run.started", "run.cancelled"]
    assert harness.roles() == ["user"]
    assert_consistent(harness, run.id)


@pytest.mark.requirement("A12", "B4")
async def test_cancelling_during_tool_calls_cancels_those_in_flight_and_answers_all() -> None:
    remote, native_gate = HeldServer(), Gate()

    async def wait(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        await native_gate.pass_through()
        raise AssertionError

    native = InMemoryNativeTool(wait)
    harness = RunHarness(
        [asks("mcp__s__quick", "mcp__s__held", "code_execution")], servers=remote.servers(), native=[native]
    )
    run, executing = await begun(harness, remote.gate)
    await native_gate.reached.wait()
    await harness.until(run.id, lambda: harness.ledger(run.id)[0].state is ToolCallState.SETTLED)
    await harness.cancel(run.id)
    await executing
    assert harness.run(run.id).status is RunStatus.CANCELLED
    assert [sent.tool_name for sent in harness.connections.cancelled] == ["held"]
    assert native.cancelled == 1
    assert [message.role for message in harness.transcript()] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    codes = [entry.result.error_code for entry in harness.ledger(run.id) if entry.result]
    assert codes == [None, "run_cancelled", "run_cancelled"]
    assert harness.types(run.id)[-4:] == ["tool.failed", "tool.failed", "message.completed", "run.cancelled"]
    assert_consistent(harness, run.id)


@pytest.mark.requirement("A12")
async def test_a_cancel_that_comes_between_two_steps_stops_the_run_before_the_next_one() -> None:
    async def cancel(_: Invocation) -> McpReply:
        await harness.cancel(run_id)
        return text_reply("done all the same")

    harness = RunHarness(
        [asks("mcp__s__t"), says()], servers={"s": InMemoryMcpServer(tools={"t": InMemoryTool(answer=cancel)})}
    )
    await harness.warm_up()
    run_id = await harness.start()
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.CANCELLED
    assert len(harness.model.requests) == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A12", "E5")
async def test_a_run_that_is_cancelled_when_it_is_taken_up_again_rings_for_the_next_of_its_thread() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="I was go", gate=gate)])
    run, executing = await begun(harness, gate)
    behind = await harness.start()
    harness.worker.active_runs.stop_all()
    await harness.cancel(run.id)
    await executing
    assert harness.run(run.id).status is RunStatus.QUEUED
    harness.queue.run_ids.clear()
    await harness.new_worker(OTHER_WORKER).execute(run.id)
    assert harness.run(run.id).status is RunStatus.CANCELLED
    assert harness.queue.run_ids == [behind]


@pytest.mark.requirement("A12")
async def test_a_run_is_cancelled_before_anybody_has_taken_it_up() -> None:
    harness = RunHarness([])
    run_id = await harness.start()
    assert (await harness.cancel(run_id)).status is RunStatus.CANCELLED
    await harness.worker.execute(run_id)
    assert harness.types(run_id) == ["run.queued", "run.cancelled"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A12", "D5")
async def test_a_stop_that_comes_as_the_turn_suspends_the_run_does_not_fail_it() -> None:
    """The last executable sibling of a displayed call asks for the stop: the journal cancels in the
    suspending step."""

    async def cancel(_: Invocation) -> McpReply:
        await harness.cancel(run_id)
        return text_reply("ok")

    email = ModelTurn(calls=(*asks("mcp__s__t").calls, *asks("send_email").calls))
    harness = RunHarness([email], servers={"s": InMemoryMcpServer(tools={"t": InMemoryTool(answer=cancel)})})
    harness.schemas.violations = lambda schema, value: ()  # type: ignore[method-assign]  # what is sent does not matter here
    await harness.warm_up()
    run_id = await harness.start()
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.CANCELLED
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E7")
async def test_a_draining_worker_finishes_the_turn_in_hand_and_another_goes_on() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__held"), says("Went on.")], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    harness.clock.advance(7)
    harness.worker.active_runs.drain()
    remote.gate.open.set()
    await executing
    assert harness.run(run.id).status is RunStatus.QUEUED
    assert harness.run(run.id).active_s == 7
    assert harness.results() == ["held"]
    harness.clock.advance(1_000)
    await harness.new_worker(OTHER_WORKER).execute(run.id)
    after = harness.run(run.id)
    assert (after.status, after.output, after.attempt) == (RunStatus.COMPLETED, "Went on.", 2)
    assert harness.server_calls() == ["held"]
    assert after.active_s == 7, "waiting for another worker is not active time"
    assert harness.types(run.id).count("run.started") == 2
    assert_consistent(harness, run.id)


@pytest.mark.requirement("E7")
async def test_a_run_that_a_draining_worker_takes_up_is_handed_back_before_anything_is_sent() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__held"), says()], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    harness.worker.active_runs.stop_all()
    await executing
    drained = harness.new_worker(OTHER_WORKER)
    drained.active_runs.drain()
    await drained.execute(run.id)
    assert harness.run(run.id).status is RunStatus.QUEUED
    assert harness.ledger(run.id)[0].result is None
    assert len(harness.connections.calls) == 1


@pytest.mark.requirement("E3", "E7")
async def test_stopping_a_worker_cuts_its_waits_short_and_hands_the_runs_back() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__quick", "mcp__s__held"), says("Unsure.")], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    await harness.until(run.id, lambda: harness.ledger(run.id)[0].state is ToolCallState.SETTLED)
    harness.queue.run_ids.clear()
    harness.worker.active_runs.stop_all()
    await executing
    assert harness.run(run.id).status is RunStatus.QUEUED
    assert harness.queue.run_ids == [run.id], "a worker that stays need not wait for the sweep"
    assert [sent.tool_name for sent in harness.connections.cancelled] == ["held"]
    await harness.new_worker().execute(run.id)
    assert harness.server_calls() == ["quick", "held"], "neither the settled nor the unrepeatable call is sent again"
    quick, held = harness.ledger(run.id)
    assert quick.result is not None
    assert held.result is not None
    assert (quick.result.text, held.result.error_code) == ("quick", "outcome_unknown")
    assert harness.run(run.id).output == "Unsure."
    assert_consistent(harness, run.id)


@pytest.mark.requirement("E7")
async def test_text_of_a_reply_that_was_cut_by_a_shutdown_is_taken_back() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="Half a", gate=gate), says("A whole reply.")])
    run, executing = await begun(harness, gate)
    harness.worker.active_runs.stop_all()
    await executing
    [discarded] = harness.of_type(run.id, RunEventType.MESSAGE_DISCARDED)
    await harness.new_worker().execute(run.id)
    first, second = harness.of_type(run.id, RunEventType.MESSAGE_DELTA)
    assert (discarded["message_id"], discarded["reason"]) == (first["message_id"], "run_shutdown")
    assert second["message_id"] == harness.transcript()[-1].id != first["message_id"]
    assert_consistent(harness, run.id)


@pytest.mark.requirement("E4", "E7")
async def test_a_run_that_is_not_its_workers_any_more_is_not_rung_for_by_a_worker_that_stops() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__held")], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    harness.clock.advance(16)
    await harness.recover(sole_owner=False)
    harness.queue.run_ids.clear()
    harness.worker.active_runs.stop_all()
    await executing
    assert harness.run(run.id).status is RunStatus.QUEUED
    assert harness.queue.run_ids == []


@pytest.mark.requirement("E4")
async def test_a_worker_whose_lease_was_taken_writes_nothing_more() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__held"), says("The second worker's.")], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    harness.clock.advance(16)
    await harness.recover(sole_owner=False)
    assert harness.queue.run_ids[-1] == run.id
    before = harness.events(run.id)
    await harness.worker.active_runs.renew()
    await executing
    assert harness.events(run.id) == before
    assert harness.run(run.id).status is RunStatus.QUEUED
    await harness.new_worker().execute(run.id)
    assert harness.run(run.id).output == "The second worker's."
    assert_consistent(harness, run.id)


@pytest.mark.requirement("E4")
async def test_a_late_result_of_a_fenced_worker_is_not_stored() -> None:
    remote = HeldServer()
    harness = RunHarness([asks("mcp__s__held"), says("Other.")], servers=remote.servers())
    run, executing = await begun(harness, remote.gate)
    harness.clock.advance(16)
    await harness.recover(sole_owner=False)
    await harness.new_worker().execute(run.id)
    before = harness.events(run.id)
    remote.gate.open.set()
    await executing
    assert harness.events(run.id) == before
    assert harness.results() == [entry.result.text for entry in harness.ledger(run.id) if entry.result]
    assert_consistent(harness, run.id)


@pytest.mark.requirement("E4")
async def test_nothing_is_sent_on_a_lease_that_was_not_renewed_in_time() -> None:
    gate = Gate()
    harness = RunHarness(
        [ModelTurn(calls=asks("mcp__s__quick").calls, gate=gate), says()], servers=HeldServer().servers()
    )
    run, executing = await begun(harness, gate)
    harness.clock.advance(14)
    gate.open.set()
    await executing
    assert harness.connections.calls == []
    assert harness.run(run.id).status is RunStatus.IN_PROGRESS, "the lease lapses, and the sweep finds the run"


async def test_the_watch_for_a_cancel_is_over_when_the_run_is() -> None:
    harness = RunHarness([says()])
    await harness.play()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others


@pytest.mark.requirement("G1")
async def test_the_trace_of_a_run_that_is_cancelled_while_it_waits_is_completed_once() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL),)), says()])
    run_id = await harness.play()
    assert harness.tracer.finished == []
    await harness.cancel(run_id)
    await harness.cancel(run_id)
    assert [(run.id, run.status) for run in harness.tracer.finished] == [(run_id, RunStatus.CANCELLED)]
