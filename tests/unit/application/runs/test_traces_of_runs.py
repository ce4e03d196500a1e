"""What tracing is told of a run: every call of a tool once, however it was settled, and the run
itself once, however it ended."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.runs.ports import RunReader
from application.runs.trace_ended_run import TraceEndedRun
from domain.approvals.decision import CallDecision
from domain.ids import RunId
from domain.policy.canary import CanaryToken
from domain.runs.ledger import ToolCallState
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from tests.builders import OTHER_WORKER, an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.approving import SEND, a_harness, decide, denies, sends
from tests.unit.application.runs.doubles import HeldServer, RecordingTracer, asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.test_stopping_a_run import begun

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text")})}
SHOWS = ModelTurn(text="Shall I?", calls=(call("mcp__s__read"), call("send_email", EMAIL)))


def told(harness: RunHarness, run_id: RunId) -> list[tuple[str, str | None]]:
    """Name and error code of the calls that were told of, in the order of the ledger."""
    records = [record for record in harness.tracer.tool_calls if record.run.id == run_id]
    codes = {record.call.id: record.call.result.error_code for record in records if record.call.result}
    assert len(codes) == len(records), "each call is told of once"
    ledger = harness.ledger(run_id)
    assert codes.keys() <= {entry.id for entry in ledger}
    return [(entry.name, codes[entry.id]) for entry in ledger if entry.id in codes]


async def played(harness: RunHarness) -> RunId:
    """A run that has gone as far as it goes, a moment ago."""
    run_id = await harness.play()
    harness.clock.advance(1)
    return run_id


def endings(harness: RunHarness) -> list[tuple[RunId, RunStatus]]:
    return [(run.id, run.status) for run in harness.tracer.finished]


@pytest.mark.requirement("G1")
async def test_calls_that_are_refused_are_told_like_those_that_are_made() -> None:
    turn = ModelTurn(calls=(call("mcp__s__read"), call("nowhere"), call("mcp__s__read", malformed="{")))
    harness = RunHarness([turn, says()], servers=READ)
    run_id = await harness.play()
    assert told(harness, run_id) == [
        ("mcp__s__read", None),
        ("nowhere", "tool_not_found"),
        ("mcp__s__read", "tool_arguments_malformed"),
    ]
    made, *_ = [record for record in harness.tracer.tool_calls if not record.result.is_error]
    assert made.tool is not None
    assert made.tool.mcp is not None


@pytest.mark.requirement("G1", "C2")
async def test_calls_that_policy_blocks_are_told() -> None:
    harness = a_harness(sends("hello", beside=("mcp__s__read",)), says(), policies=denies())
    run_id = await harness.play()
    [(name, code), other] = told(harness, run_id)
    assert (name, other) == (SEND, ("mcp__s__read", None))
    assert code is not None


@pytest.mark.requirement("G1", "C3")
async def test_a_call_that_nobody_would_approve_is_told_when_the_run_goes_on() -> None:
    harness = a_harness(sends("hello", beside=("mcp__s__read",)), says())
    run_id = await played(harness)
    assert told(harness, run_id) == [("mcp__s__read", None)]
    [waiting] = harness.run(run_id).pending
    await decide(harness, run_id, CallDecision(tool_call_id=waiting.id, approve=False))
    await harness.new_worker().execute(run_id)
    assert told(harness, run_id) == [(SEND, "approval_denied"), ("mcp__s__read", None)]
    assert endings(harness) == [(run_id, RunStatus.COMPLETED)]


@pytest.mark.requirement("G1", "D5")
async def test_what_the_client_settled_is_told_when_the_run_goes_on() -> None:
    harness = RunHarness([SHOWS, says()], servers=READ)
    run_id = await played(harness)
    [waiting] = harness.run(run_id).pending
    await harness.resume(run_id, {waiting.id: "bounced"}, is_error=True)
    await harness.new_worker().execute(run_id)
    assert told(harness, run_id) == [("mcp__s__read", None), ("send_email", "client_tool_failed")]
    assert endings(harness) == [(run_id, RunStatus.COMPLETED)]


@pytest.mark.requirement("G1", "A12")
async def test_calls_that_a_cancel_cuts_off_are_told() -> None:
    server = HeldServer()
    harness = RunHarness([asks("mcp__s__quick", "mcp__s__held")], servers=server.servers())
    run, executing = await begun(harness, server.gate)
    await harness.until(run.id, lambda: harness.ledger(run.id)[0].state is ToolCallState.SETTLED)
    await harness.cancel(run.id)
    await executing
    assert told(harness, run.id) == [("mcp__s__quick", None), ("mcp__s__held", "run_cancelled")]
    assert endings(harness) == [(run.id, RunStatus.CANCELLED)]


@pytest.mark.requirement("G1", "A7")
async def test_calls_that_a_limit_forbids_are_told() -> None:
    harness = RunHarness(
        [asks("mcp__s__read", "mcp__s__read"), says()], servers=READ, limits=LimitSettings(max_tool_calls=1)
    )
    run_id = await harness.play()
    assert told(harness, run_id) == [("mcp__s__read", None), ("mcp__s__read", "limit_reached")]
    assert endings(harness) == [(run_id, RunStatus.INCOMPLETE)]


@pytest.mark.requirement("G1", "D5")
async def test_a_run_that_the_next_message_completes_is_told_with_the_calls_it_settles() -> None:
    harness = RunHarness([SHOWS], servers=READ)
    run_id = await played(harness)
    await harness.start("And now?")
    assert told(harness, run_id) == [("mcp__s__read", None), ("send_email", None)]
    assert endings(harness) == [(run_id, RunStatus.COMPLETED)]


@pytest.mark.requirement("G1", "E5")
@pytest.mark.parametrize("strategy", [MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK])
async def test_runs_that_a_strategy_stops_are_told(strategy: MultitaskStrategy) -> None:
    harness = a_harness(sends("hello", beside=("mcp__s__read",)))
    waiting = await played(harness)
    queued = await harness.start()
    await harness.start(strategy=strategy)
    assert endings(harness) == [(waiting, RunStatus.CANCELLED), (queued, RunStatus.CANCELLED)]
    assert told(harness, waiting) == [(SEND, "run_cancelled"), ("mcp__s__read", None)]


@pytest.mark.requirement("G1", "A12")
async def test_a_run_that_is_cancelled_while_it_waits_is_told_with_all_its_calls() -> None:
    shows = ModelTurn(calls=(call("send_email", EMAIL), call("send_email", EMAIL)))
    harness = RunHarness([shows])
    run_id = await played(harness)
    first, _ = harness.run(run_id).pending
    await harness.resume(run_id, {first.id: "sent"})
    harness.clock.advance(1)
    await harness.cancel(run_id)
    assert told(harness, run_id) == [("send_email", None), ("send_email", "run_cancelled")]
    assert endings(harness) == [(run_id, RunStatus.CANCELLED)]


@pytest.mark.requirement("G1", "A12")
async def test_a_run_that_ends_when_it_is_taken_up_is_told() -> None:
    server = HeldServer()
    harness = RunHarness([asks("mcp__s__quick", "mcp__s__held")], servers=server.servers())
    run, executing = await begun(harness, server.gate)
    await harness.until(run.id, lambda: harness.ledger(run.id)[0].state is ToolCallState.SETTLED)
    harness.worker.active_runs.stop_all()
    await harness.cancel(run.id)
    await executing
    assert endings(harness) == []
    harness.clock.advance(1)
    await harness.new_worker(OTHER_WORKER).execute(run.id)
    assert told(harness, run.id) == [("mcp__s__quick", None), ("mcp__s__held", "run_cancelled")]
    assert endings(harness) == [(run.id, RunStatus.CANCELLED)]


@pytest.mark.requirement("G1", "D5")
async def test_a_run_that_ends_instead_of_waiting_for_a_message_that_is_there_is_told() -> None:
    server = HeldServer()
    shows = ModelTurn(calls=(call("mcp__s__held"), call("send_email", EMAIL)))
    harness = RunHarness([shows], servers=server.servers())
    run, executing = await begun(harness, server.gate)
    behind = await harness.start("And now?")
    server.gate.open.set()
    await executing
    assert told(harness, run.id) == [("mcp__s__held", None), ("send_email", None)]
    assert endings(harness) == [(run.id, RunStatus.COMPLETED)]
    assert harness.queue.run_ids[-1] == behind


@pytest.mark.requirement("G1", "C4")
async def test_what_is_told_of_an_ended_run_holds_no_token_that_its_agent_has_by_now() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL), call("send_email", EMAIL)))])
    run_id = await played(harness)
    first, _ = harness.run(run_id).pending
    await harness.resume(run_id, {first.id: "Nightingale-4471 was sent"})
    harness.change_agent(canary_tokens=(CanaryToken(id="vault", secret="Nightingale-4471"),))
    await harness.cancel(run_id)
    [sent] = [record for record in harness.tracer.tool_calls if not record.result.is_error]
    assert sent.result.text == "[canary:vault] was sent"


@pytest.mark.requirement("G1")
async def test_without_tracing_nothing_is_read_for_it(mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    agents = mocker.create_autospec(AgentStore, instance=True)
    tracer = RecordingTracer(enabled=False)
    harness = RunHarness([SHOWS], servers=READ)
    run_id = await harness.play()
    await TraceEndedRun(runs=runs, agents=agents, tracer=tracer).execute(harness.run(run_id))
    assert runs.mock_calls == agents.mock_calls == []
    assert tracer == RecordingTracer(enabled=False)


@pytest.mark.requirement("G1")
async def test_a_run_whose_calls_cannot_be_read_is_told_alone(mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(RunReader, instance=True)
    runs.tool_calls.side_effect = ConnectionError
    harness = RunHarness([SHOWS], servers=READ)
    run_id = await harness.play()
    harness.trace_ended = TraceEndedRun(runs=runs, agents=harness.agents, tracer=harness.tracer)
    assert (await harness.cancel(run_id)).status is RunStatus.CANCELLED
    assert endings(harness) == [(run_id, RunStatus.CANCELLED)]


@pytest.mark.requirement("G1")
async def test_a_run_of_a_deleted_agent_is_told_all_the_same() -> None:
    harness = RunHarness([SHOWS], servers=READ, agent=an_agent(mcp_servers=("s",)))
    run_id = await harness.start()
    harness.state.deleted_agents.add(harness.agent.id)
    run = replace(harness.run(run_id), status=RunStatus.CANCELLED)
    await harness.trace_ended.execute(run)
    assert endings(harness) == [(run_id, RunStatus.CANCELLED)]
