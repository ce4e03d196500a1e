"""Crashes: a worker that dies leaves the run as its last step stored it, and the next one continues
from there."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.runs.limits import IncompleteReason
from domain.runs.run import MAX_LEASE_EXPIRATIONS, RunStatus
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import InMemoryNativeTool, asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

SERVERS = {
    "s": InMemoryMcpServer(
        tools={
            "write": InMemoryTool(answer=text_reply("written")),
            "read": InMemoryTool(answer=text_reply("read"), read_only_hint=True),
            "put": InMemoryTool(answer=text_reply("put"), idempotent_hint=True),
        }
    )
}


@pytest.mark.requirement("E3", "E4", "E7")
async def test_a_reply_that_was_not_stored_is_asked_for_again(mocker: MockerFixture) -> None:
    harness = RunHarness([says("lost"), says("kept")])
    run_id = await harness.start()
    await crash_after(harness, mocker, 0)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.status, run.output, run.attempt) == (RunStatus.COMPLETED, "kept", 2)
    assert harness.roles() == ["user", "assistant"], "the user's message is not written twice"
    assert harness.actions(run_id) == ["run.started", "run.completed"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A11", "C1")
async def test_recorded_calls_are_answered_and_not_made_when_the_agent_was_disabled_meanwhile(
    mocker: MockerFixture,
) -> None:
    harness = RunHarness([asks("mcp__s__read", "mcp__s__put"), says()], servers=SERVERS)
    harness.change_server("s", trusted=True)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.connections.calls.clear()
    harness.change_agent(enabled=False)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.status, run.error and run.error.code) == (RunStatus.FAILED, "agent_disabled")
    assert harness.server_calls() == []
    assert [entry.result and entry.result.error_code for entry in harness.ledger(run_id)] == ["agent_disabled"] * 2
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
async def test_recorded_calls_are_repeated_only_if_a_trusted_server_says_they_may_be(mocker: MockerFixture) -> None:
    harness = RunHarness([asks("mcp__s__write", "mcp__s__read", "mcp__s__put"), says()], servers=SERVERS)
    harness.change_server("s", trusted=True)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.connections.calls.clear()
    await harness.worker.execute(run_id)
    assert sorted(harness.server_calls()) == ["put", "read"]
    write, read, put = harness.ledger(run_id)
    assert write.result is not None
    assert (write.result.error_code, write.repeatable) == ("outcome_unknown", False)
    assert [entry.result.text for entry in (read, put) if entry.result] == ["read", "put"]
    assert "unknown" in harness.results()[0]
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.actions(run_id).count("tool.failed") == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
async def test_what_an_untrusted_server_says_of_its_tools_repeats_nothing(mocker: MockerFixture) -> None:
    harness = RunHarness([asks("mcp__s__read"), says()], servers=SERVERS)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.connections.calls.clear()
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
async def test_a_settled_call_is_never_made_again(mocker: MockerFixture) -> None:
    code = InMemoryNativeTool("ran", repeatable=True)
    harness = RunHarness([asks("code_execution", "mcp__s__write"), says()], servers=SERVERS, native=[code])
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 2)
    settled = next(entry.name for entry in harness.ledger(run_id) if entry.result is not None)
    code.calls.clear()
    harness.connections.calls.clear()
    await harness.worker.execute(run_id)
    assert settled == "code_execution"
    assert code.calls == []
    assert harness.server_calls() == []
    first, second = harness.ledger(run_id)
    assert first.result is not None
    assert second.result is not None
    assert (first.result.text, second.result.error_code) == ("ran", "outcome_unknown")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
async def test_a_repeatable_native_tool_is_run_again(mocker: MockerFixture) -> None:
    code = InMemoryNativeTool("ran", repeatable=True)
    harness = RunHarness([asks("code_execution"), says()], native=[code])
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    await harness.worker.execute(run_id)
    assert len(code.calls) == 2
    assert harness.results() == ["ran"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("D5", "E3")
async def test_a_turn_with_a_displayed_call_that_was_cut_off_still_comes_to_wait(mocker: MockerFixture) -> None:
    turn = ModelTurn(calls=(call("mcp__s__write"), call("send_email", EMAIL)))
    harness = RunHarness([turn], servers=SERVERS)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.status, [use.name for use in run.pending]) == (RunStatus.REQUIRES_ACTION, ["send_email"])
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7", "E3")
async def test_a_recovered_run_with_only_the_closing_turns_share_left_closes_with_it(mocker: MockerFixture) -> None:
    harness = RunHarness([asks("mcp__s__write"), says("In short.")], servers=SERVERS)
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.state.runs[run_id].run = replace(harness.run(run_id), active_s=580.0)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.incomplete_reason, run.output) == (IncompleteReason.TIMEOUT, "In short.")
    assert_consistent(harness, run_id)


async def never(*_: object, **__: object) -> None:
    await Gate().pass_through()


@pytest.mark.requirement("A7", "E3")
async def test_open_calls_of_a_recovered_run_whose_time_is_up_are_answered(mocker: MockerFixture) -> None:
    harness = RunHarness([asks("mcp__s__write"), says()], servers=SERVERS)
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.state.runs[run_id].run = replace(harness.run(run_id), active_s=10_000.0)
    harness.state.catalogs.clear()
    mocker.patch.object(harness.connections, "discover", side_effect=never)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).incomplete_reason is IncompleteReason.TIMEOUT
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == ["limit_reached"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E7")
async def test_a_sweep_rings_for_queued_runs_whose_doorbell_was_lost() -> None:
    harness = RunHarness([says()])
    run_id = await harness.start()
    harness.queue.run_ids.clear()
    assert await harness.recover(sole_owner=False) == 1
    assert harness.queue.run_ids == [run_id]


@pytest.mark.requirement("E4")
async def test_a_sweep_leaves_held_runs_alone() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(gate=gate)])
    run_id = await harness.start()
    executing = harness.worker.begin(run_id)
    await gate.reached.wait()
    assert await harness.recover(sole_owner=False) == 0
    gate.open.set()
    await executing
    assert harness.run(run_id).status is RunStatus.COMPLETED


@pytest.mark.requirement("E4")
async def test_two_workers_rung_for_one_run_execute_it_once() -> None:
    harness = RunHarness([says()])
    run_id = await harness.start()
    other = harness.new_worker()
    await asyncio.gather(harness.worker.execute(run_id), other.execute(run_id), harness.worker.execute(run_id))
    assert harness.run(run_id).attempt == 1
    assert len(harness.model.requests) == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E4", "E7")
async def test_a_run_that_no_worker_survives_is_given_up_and_makes_room_for_the_next_of_its_thread(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    harness = RunHarness([says("lost")] * MAX_LEASE_EXPIRATIONS)
    run_id = await harness.start()
    for _ in range(MAX_LEASE_EXPIRATIONS):
        await crash_after(harness, mocker, 0)
    behind = await harness.start()
    harness.clock.advance(1)
    harness.queue.run_ids.clear()
    with caplog.at_level("WARNING"):
        await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert run.error is not None
    assert (run.status, run.error.code, run.attempt) == (RunStatus.FAILED, "too_many_attempts", MAX_LEASE_EXPIRATIONS)
    assert len(harness.model.requests) == MAX_LEASE_EXPIRATIONS, "the model is not asked once more"
    assert harness.queue.run_ids == [behind]
    assert harness.actions(run_id) == ["run.started", "run.failed"]
    [logged] = [record for record in caplog.records if record.message == "run ended when it was claimed"]
    assert (logged.__dict__["run_id"], logged.__dict__["error_code"]) == (run_id, "too_many_attempts")
    assert [(told.id, told.status) for told in harness.tracer.finished] == [(run_id, RunStatus.FAILED)]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E4", "E7")
async def test_a_run_that_gets_on_a_little_with_every_worker_is_not_given_up(mocker: MockerFixture) -> None:
    harness = RunHarness(
        lambda request: asks("mcp__s__read") if request.turn <= MAX_LEASE_EXPIRATIONS else says(), servers=SERVERS
    )
    harness.change_agent(limits=replace(harness.agent.config.limits, max_turns=2 * MAX_LEASE_EXPIRATIONS))
    harness.change_server("s", trusted=True)
    await harness.warm_up()
    run_id = await harness.start()
    for _ in range(MAX_LEASE_EXPIRATIONS + 1):
        await crash_after(harness, mocker, 1)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert_consistent(harness, run_id)
