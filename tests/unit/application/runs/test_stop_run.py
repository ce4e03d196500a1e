"""StopRun: what stopping does to a run, depending on who executes it."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import ConnectionScope, McpConnections
from application.runs.ports import RunQueue, RunStore, control_topic
from application.runs.stop_run import StopRun
from application.runs.trace_ended_run import TraceEndedRun
from application.system.wakeups import Wakeups
from domain.audit.event import AuditAction
from domain.runs.run import Run, RunStatus
from tests.builders import KEY, ORG, RUN, a_displayable_call, a_run, a_run_id, a_tool_use, after
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import a_claimed_run, a_state_with_run, a_waiting_run, an_ended_run

QUEUED, RUNNING = a_run(), a_claimed_run()
CALL = a_displayable_call()
WAITING = a_waiting_run(a_tool_use(CALL))


class Ports:
    """The run in memory, and mocks of what stopping it calls beside the store."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.trace_ended: MockType = mocker.create_autospec(TraceEndedRun, instance=True)
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)

    async def stop(self, run: Run, runs: RunStore | InMemoryState) -> Run | None:
        stopping = StopRun(
            runs=InMemoryRunStore(runs, self.wakeups) if isinstance(runs, InMemoryState) else runs,
            queue=self.queue,
            connections=self.connections,
            trace_ended=self.trace_ended,
            clock=FixedClock(),
        )
        return await stopping.execute(run, actor=KEY)

    def assert_nothing_is_closed(self) -> None:
        self.connections.release.assert_not_awaited()
        self.trace_ended.execute.assert_not_awaited()
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("A12", "G1")
@pytest.mark.parametrize("run", [QUEUED, WAITING], ids=["queued", "waiting"])
async def test_a_run_that_no_worker_executes_ends_at_once_with_its_trace(ports: Ports, run: Run) -> None:
    state = a_state_with_run(run, *(() if run is QUEUED else (CALL,)))

    stopped = await ports.stop(run, state)

    assert stopped is not None
    assert (stopped.status, stopped.finished_at) == (RunStatus.CANCELLED, after(0))
    assert state.runs[RUN].run == stopped
    ports.connections.release.assert_awaited_once_with(ConnectionScope(organization_id=ORG, run_id=RUN))
    ports.trace_ended.execute.assert_awaited_once_with(stopped)


@pytest.mark.requirement("A12", "C5")
async def test_the_end_of_the_run_is_audited_with_the_key_that_stopped_it(ports: Ports) -> None:
    state = a_state_with_run(QUEUED)

    await ports.stop(QUEUED, state)

    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.run_id) == (AuditAction.RUN_CANCELLED, KEY, RUN)


@pytest.mark.requirement("A12")
async def test_the_worker_of_a_run_in_progress_is_asked_to_stop(ports: Ports) -> None:
    state = a_state_with_run(RUNNING)

    stopped = await ports.stop(RUNNING, state)

    assert stopped is not None
    assert (stopped.status, stopped.cancel_requested_by) == (RunStatus.IN_PROGRESS, KEY)
    ports.wakeups.wake.assert_called_once_with(control_topic(RUN))
    ports.assert_nothing_is_closed()


@pytest.mark.requirement("A12")
@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.CANCELLED])
async def test_stopping_an_ended_run_changes_nothing(ports: Ports, status: RunStatus) -> None:
    ended = an_ended_run(status)
    state = a_state_with_run(ended)

    assert await ports.stop(ended, state) == ended

    assert (state.runs[RUN].run, state.audit) == (ended, {})
    ports.assert_nothing_is_closed()


@pytest.mark.requirement("E5")
async def test_the_next_run_of_the_thread_is_submitted(ports: Ports) -> None:
    state = a_state_with_run(WAITING, CALL)
    behind = a_run(a_run_id(2), created_at=after(1))
    state.runs[behind.id] = StoredRun(run=behind)

    await ports.stop(WAITING, state)

    ports.queue.submit.assert_awaited_once_with(behind.id)


async def test_a_run_that_does_not_exist_any_more_stops_nothing(ports: Ports) -> None:
    assert await ports.stop(QUEUED, InMemoryState()) is None

    ports.assert_nothing_is_closed()


async def test_a_stop_that_cannot_be_stored_closes_nothing(ports: Ports, mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(RunStore, instance=True)
    runs.change.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop(QUEUED, runs)

    ports.assert_nothing_is_closed()
