"""ExecuteRun: how a worker claims a run, and how it leaves it, whatever happens in the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import ConnectionScope, McpConnections
from application.models.ports import ModelError
from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.execute_run import ExecuteRun, ExecuteRunCommand
from application.runs.execution.interruption import Interrupted, StopReason
from application.runs.execution.run_memory import RunMemory
from application.runs.execution.run_session import RunSession
from application.runs.ports import (
    AccountConsents,
    EndedAtClaim,
    LeaseLost,
    RunJournal,
    RunLeases,
    RunQueue,
    control_topic,
)
from application.runs.trace_ended_run import TraceEndedRun
from application.system.memory_budget import MemoryBudget
from application.tracing.ports import Tracer
from domain.mcp.elicitation import Elicitation
from domain.runs.ledger import ToolCall
from domain.runs.run import SUSPECT_AFTER, Run, RunError, RunStatus
from domain.runs.run_events import run_requires_action
from domain.runs.step import Step
from domain.tools.result import ToolOutcome
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import KEY, ORG, RUN, START, WORKER, a_run, a_run_id, a_tool_call, a_tool_use, after
from tests.doubles.journal import InMemoryRunJournal
from tests.doubles.leases import InMemoryRunLeases
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.run_builders import a_state_with_run, an_ended_run

CALL = a_tool_call()
OF_RUN = ConnectionScope(organization_id=ORG, run_id=RUN)
Loop = Callable[[RunSession], Awaitable[None]]


class Ports:
    """A queued run in memory, a loop that completes it, and mocks of what else `ExecuteRun`
    calls."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with_run(a_run())
        self.wakeups = InProcessWakeups()
        self.leases: RunLeases = InMemoryRunLeases(self.state, self.wakeups)
        self.journal: RunJournal = InMemoryRunJournal(self.state, self.wakeups)
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.loop: MockType = mocker.create_autospec(AgentLoop, instance=True)
        self.loop.run.side_effect = complete
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.trace_ended: MockType = mocker.create_autospec(TraceEndedRun, instance=True)
        self.consents: MockType = mocker.create_autospec(AccountConsents, instance=True)
        self.clock = FixedClock()
        self.memory = RunMemory(MemoryBudget(2**30))
        self.active_runs = ActiveRuns(leases=self.leases, clock=self.clock, worker_id=WORKER, settings=LeaseSettings())

    async def execute(self, *, is_called: bool = False) -> None:
        executing = ExecuteRun(
            leases=self.leases,
            journal=self.journal,
            queue=self.queue,
            wakeups=self.wakeups,
            loop=self.loop,
            active_runs=self.active_runs,
            memory=self.memory,
            connections=self.connections,
            tracer=self.tracer,
            trace_ended=self.trace_ended,
            consents=self.consents,
            clock=self.clock,
            ids=SequentialIds(),
            log_context=lambda **_: nullcontext(),
        )
        await executing.execute(ExecuteRunCommand(run_id=RUN, is_called=is_called))

    def add(self, *calls: ToolCall) -> None:
        """The run has open calls."""
        self._store(a_state_with_run(a_run(), *calls))

    def suspect(self) -> None:
        """Workers were lost while they executed the run."""
        self._store(a_state_with_run(replace(a_run(), lapses=SUSPECT_AFTER)))

    def _store(self, state: InMemoryState) -> None:
        self.state = state
        self.leases = InMemoryRunLeases(state, self.wakeups)
        self.journal = InMemoryRunJournal(state, self.wakeups)

    def queue_behind(self) -> None:
        behind = a_run(a_run_id(2), created_at=after(1))
        self.state.runs[behind.id] = StoredRun(run=behind)

    def fail(self, error: BaseException) -> None:
        self.loop.run.side_effect = error

    @property
    def run(self) -> Run:
        return self.state.runs[RUN].run

    def assert_run_is_left_to_its_lease(self) -> None:
        assert (self.run.status, self.state.runs[RUN].held_by) == (RunStatus.IN_PROGRESS, WORKER)
        self.tracer.run_finished.assert_not_called()
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def complete(session: RunSession) -> None:
    ended = session.run.ended(RunStatus.COMPLETED, at=START, output="Done.")
    await session.advance(lambda: Step(run=ended))


def suspend_for(*pending: Elicitation) -> Loop:
    """A loop that leaves the run waiting for answers to these questions."""

    async def suspend(session: RunSession) -> None:
        uses = tuple(replace(a_tool_use(), elicitation=question) for question in pending) or (a_tool_use(),)
        waiting = Step(run=session.run.suspended(uses), events=(run_requires_action(uses, at=START),))
        await session.advance(lambda: waiting)

    return suspend


# --- claiming ---


async def test_a_worker_that_drains_leaves_the_run_to_others(ports: Ports) -> None:
    ports.memory.drain()
    await ports.execute()

    assert (ports.run.status, ports.run.attempt) == (RunStatus.QUEUED, 0)
    ports.queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("E4")
async def test_a_claimed_run_is_executed_and_its_connections_are_released(ports: Ports) -> None:
    await ports.execute()

    assert (ports.run.status, ports.run.attempt, ports.state.runs[RUN].held_by) == (RunStatus.COMPLETED, 1, None)
    ports.tracer.run_finished.assert_called_once()
    ports.connections.release.assert_awaited_once_with(OF_RUN)
    assert ports.active_runs.count == 0


@pytest.mark.requirement("E4", "E5")
async def test_a_run_that_another_worker_holds_is_not_executed(ports: Ports) -> None:
    ports.state.runs[RUN].run = ports.run.claimed(at=START)

    await ports.execute()

    ports.loop.run.assert_not_awaited()
    ports.connections.release.assert_not_awaited()


@pytest.mark.requirement("E4")
async def test_a_run_that_ends_at_its_claim_is_closed_and_not_executed(ports: Ports, mocker: MockerFixture) -> None:
    ended = an_ended_run()
    ports.leases = leases = mocker.create_autospec(RunLeases, instance=True)
    leases.claim.return_value = EndedAtClaim(run=ended, promoted=a_run_id(2))

    await ports.execute()

    ports.loop.run.assert_not_awaited()
    ports.connections.release.assert_awaited_once_with(OF_RUN)
    ports.queue.submit.assert_awaited_once_with(a_run_id(2))
    ports.trace_ended.execute.assert_awaited_once_with(ended)


@pytest.mark.requirement("E4")
async def test_a_suspected_run_waits_while_this_worker_claims_another(ports: Ports) -> None:
    ports.suspect()
    with ports.active_runs.claiming():
        executing = asyncio.create_task(ports.execute())
        for _ in range(100):
            await asyncio.sleep(0)
        ports.loop.run.assert_not_awaited()

    await executing
    ports.loop.run.assert_awaited_once()


async def test_a_claim_that_fails_executes_nothing(ports: Ports, mocker: MockerFixture) -> None:
    ports.leases = leases = mocker.create_autospec(RunLeases, instance=True)
    leases.claim.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.execute()

    ports.loop.run.assert_not_awaited()
    ports.connections.release.assert_not_awaited()


# --- stops from outside ---


@pytest.mark.requirement("A12", "E3")
async def test_a_cancel_request_ends_a_wait_and_every_open_call_has_its_result(ports: Ports) -> None:
    ports.add(CALL)
    waits = asyncio.Event()

    async def wait(session: RunSession) -> None:
        with session.stop.interruptible(None):
            waits.set()
            await asyncio.get_running_loop().create_future()

    ports.loop.run.side_effect = wait

    async with asyncio.timeout(10):
        executing = asyncio.create_task(ports.execute())
        await waits.wait()
        ports.state.runs[RUN].run = replace(ports.run, cancel_requested_by=KEY)
        ports.wakeups.wake(control_topic(RUN))
        await executing

    settled = ports.state.runs[RUN].calls[CALL.id].result
    assert settled is not None
    assert (ports.run.status, settled.error_code) == (RunStatus.CANCELLED, "run_cancelled")
    assert KEY in {entry.actor for entry in ports.state.audit.values()}


@pytest.mark.requirement("A12")
async def test_a_stop_does_not_cut_a_write_short(ports: Ports) -> None:
    async def write(session: RunSession) -> None:
        session.stop.fire(StopReason.CANCELLED)
        await complete(session)

    ports.loop.run.side_effect = write

    await ports.execute()

    assert ports.run.status is RunStatus.COMPLETED


@pytest.mark.requirement("E7")
async def test_a_run_of_a_worker_that_stops_is_handed_back_and_submitted(ports: Ports) -> None:
    ports.fail(Interrupted(StopReason.SHUTDOWN))

    await ports.execute()

    assert (ports.run.status, ports.state.runs[RUN].held_by) == (RunStatus.QUEUED, None)
    ports.queue.submit.assert_awaited_once_with(RUN)
    ports.connections.release.assert_awaited_once_with(OF_RUN)


@pytest.mark.requirement("E4", "E7")
async def test_a_run_that_another_worker_has_by_now_is_not_submitted_by_the_one_that_stops(ports: Ports) -> None:
    async def lose(session: RunSession) -> None:
        ports.state.runs[RUN].run = replace(ports.run, epoch=7)
        raise Interrupted(StopReason.SHUTDOWN)

    ports.loop.run.side_effect = lose

    await ports.execute()

    ports.queue.submit.assert_not_awaited()


# --- faults ---


@pytest.mark.requirement("A11", "E3")
async def test_a_run_whose_models_fail_ends_failed_with_their_code(ports: Ports) -> None:
    ports.add(CALL)
    ports.fail(ModelError("model_unavailable", "The model cannot be reached.", retryable=True))

    await ports.execute()

    assert ports.run.status is RunStatus.FAILED
    assert ports.run.error == RunError(code="model_unavailable", detail="The model cannot be reached.")
    settled = ports.state.runs[RUN].calls[CALL.id].result
    assert settled is not None
    assert (settled.outcome, settled.error_code) == (ToolOutcome.FAILED, "run_failed")


@pytest.mark.requirement("A5", "E4")
async def test_an_internal_error_fails_the_run_with_a_reference_and_does_not_reach_the_worker(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    ports.fail(RuntimeError("a secret of the harness"))

    await ports.execute()

    error = ports.run.error
    assert error is not None
    assert (ports.run.status, error.code) == (RunStatus.FAILED, "internal_error")
    [reference] = [record.__dict__["reference"] for record in caplog.records if record.exc_info]
    assert reference in error.detail
    assert "secret" not in error.detail


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    "error", [LeaseLost(RUN), Interrupted(StopReason.LEASE_LOST), storage_away()], ids=["lost", "stopped", "storage"]
)
async def test_a_run_whose_lease_or_storage_is_lost_is_written_to_no_more(ports: Ports, error: Exception) -> None:
    async def lose(session: RunSession) -> None:
        before.append(ports.run)
        raise error

    before: list[Run] = []
    ports.loop.run.side_effect = lose

    await ports.execute()

    assert before == [ports.run]
    ports.assert_run_is_left_to_its_lease()
    ports.connections.release.assert_awaited_once_with(OF_RUN)


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("stored", [LeaseLost(RUN), storage_away(), RuntimeError("boom")], ids=repr)
@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), Interrupted(StopReason.CANCELLED)], ids=["failure", "cancellation"]
)
async def test_an_end_that_cannot_be_stored_leaves_the_run_to_its_lease(
    ports: Ports, mocker: MockerFixture, error: Exception, stored: Exception
) -> None:
    ports.journal = journal = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = stored
    ports.fail(error)

    await ports.execute()

    journal.commit.assert_awaited_once()
    ports.assert_run_is_left_to_its_lease()


@pytest.mark.requirement("E7")
async def test_a_cancelled_worker_task_lets_go_of_the_run(ports: Ports) -> None:
    ports.fail(asyncio.CancelledError())

    with pytest.raises(asyncio.CancelledError):
        await ports.execute()

    assert ports.active_runs.count == 0
    assert ports.run.status is RunStatus.IN_PROGRESS


# --- leaving ---


@pytest.mark.requirement("E5")
async def test_the_next_run_of_the_thread_is_submitted_when_this_one_ends(ports: Ports) -> None:
    ports.queue_behind()

    await ports.execute()

    ports.queue.submit.assert_awaited_once_with(a_run_id(2))


@pytest.mark.requirement("B3")
async def test_a_run_that_waits_for_its_client_releases_its_connections_and_ends_no_trace(ports: Ports) -> None:
    ports.loop.run.side_effect = suspend_for()

    await ports.execute()

    assert ports.run.status is RunStatus.REQUIRES_ACTION
    ports.connections.release.assert_awaited_once_with(OF_RUN)
    ports.tracer.run_finished.assert_not_called()


@pytest.mark.requirement("B4")
async def test_the_connection_of_a_server_that_waits_for_an_answer_stays_open(ports: Ports) -> None:
    ports.loop.run.side_effect = suspend_for(Elicitation(request_id="1.where", message="Where?", schema={}))

    await ports.execute()

    ports.connections.release.assert_not_awaited()


@pytest.mark.requirement("F5")
async def test_a_called_run_waits_neither_for_room_nor_for_the_place_of_suspects(ports: Ports) -> None:
    ports.suspect()
    ports.memory = RunMemory(MemoryBudget(100))
    of_caller = await ports.memory.room()
    assert of_caller is not None
    with of_caller.hold, ports.active_runs.claiming():
        of_caller.read(1_000)
        await ports.execute(is_called=True)
    assert ports.run.status is RunStatus.COMPLETED
