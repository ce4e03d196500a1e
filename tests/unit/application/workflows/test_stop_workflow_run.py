"""StopWorkflowRun: who stops which runs, and what follows from it."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.ports import RunQueue
from application.tracing.ports import WorkflowRecord, WorkflowTracer
from application.workflows.node_execution import ToolRegistrar
from application.workflows.ports import WorkflowRunStore, workflow_control_topic
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, RunId
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, after
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.workflow_builders import (
    WORKFLOW,
    WORKFLOW_RUN,
    a_workflow,
    a_workflow_run,
    entrypoint,
    node,
    planned,
    transform,
)

PARTS = (entrypoint(), node("ask", "human_input", prompt="?"), "start -> ask")
ASKS = NodeRun(node_id="ask", status=NodeStatus.WAITING, attempt=1)
AGENT_WAITS = NodeRun(node_id="guide", status=NodeStatus.WAITING, attempt=1, run_id=RunId("run_guide"))
ENDED = [WorkflowRunStatus.COMPLETED, WorkflowRunStatus.FAILED, WorkflowRunStatus.CANCELLED]
AT_REST = [a_workflow_run(), a_workflow_run(ASKS, status=WorkflowRunStatus.REQUIRES_ACTION)]


class Ports:
    """One run, which is queued unless a test stores another."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.workflows[WORKFLOW] = [a_workflow(*PARTS)]
        self.wakeups = InProcessWakeups()
        self.runs: WorkflowRunStore = InMemoryWorkflowRunStore(self.state, self.wakeups)
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.tools: MockType = mocker.create_autospec(ToolRegistrar, instance=True)
        self.tracer: MockType = mocker.create_autospec(WorkflowTracer, instance=True)
        self.store(a_workflow_run())

    def store(self, run: WorkflowRun) -> None:
        self.state.workflow_runs[run.id] = StoredWorkflowRun(run)

    @property
    def stored(self) -> WorkflowRun:
        return self.state.workflow_runs[WORKFLOW_RUN].run

    async def stop(self, principal: Principal | None = None) -> WorkflowRun:
        stopping = StopWorkflowRun(
            runs=self.runs,
            queue=self.queue,
            tools=self.tools,
            clock=FixedClock(after(60)),
            ids=SequentialIds(),
            tracer=self.tracer,
        )
        return await stopping.execute(
            StopWorkflowRunCommand(principal=principal or a_principal(Role.OPERATOR), run_id=WORKFLOW_RUN)
        )

    def assert_nothing_follows(self) -> None:
        self.queue.submit.assert_not_awaited()
        self.tools.release.assert_not_awaited()
        self.tracer.workflow_finished.assert_not_called()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what a stop does ---


@pytest.mark.parametrize("run", AT_REST, ids=["queued", "waits for a person"])
async def test_a_run_that_no_worker_has_is_cancelled_at_once_traced_and_loses_its_tools(
    ports: Ports, run: WorkflowRun
) -> None:
    ports.store(run)

    stopped = await ports.stop()

    assert (stopped.status, stopped.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_operator")
    assert (stopped.finished_at, stopped) == (after(60), ports.stored)
    ports.tools.release.assert_awaited_once_with(stopped, planned(*PARTS))
    record = WorkflowRecord(run=stopped, definition=a_workflow(*PARTS).definition)
    ports.tracer.workflow_finished.assert_called_once_with(record)
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("F4")
async def test_a_waiting_run_whose_agents_have_runs_is_left_to_a_worker_that_cancels_them(ports: Ports) -> None:
    ports.store(a_workflow_run(AGENT_WAITS, status=WorkflowRunStatus.REQUIRES_ACTION))

    stopped = await ports.stop()

    assert (stopped.status, stopped.cancel_requested_by) == (WorkflowRunStatus.QUEUED, "key_operator")
    assert stopped.nodes["guide"] == AGENT_WAITS
    ports.queue.submit.assert_awaited_once_with(WORKFLOW_RUN)
    ports.tools.release.assert_not_awaited()
    ports.tracer.workflow_finished.assert_not_called()


async def test_a_run_under_way_is_marked_and_its_worker_is_woken(ports: Ports) -> None:
    ports.store(a_workflow_run(status=WorkflowRunStatus.IN_PROGRESS))

    async with ports.wakeups.subscribe(workflow_control_topic(WORKFLOW_RUN)) as control:
        stopped = await ports.stop()
        assert await control.wait(0)

    assert (stopped.status, stopped.cancel_requested_by) == (WorkflowRunStatus.IN_PROGRESS, "key_operator")
    ports.assert_nothing_follows()


@pytest.mark.parametrize("status", ENDED)
async def test_stopping_an_ended_run_changes_nothing(ports: Ports, status: WorkflowRunStatus) -> None:
    ended = a_workflow_run(status=status)
    ports.store(ended)

    assert await ports.stop() == ended

    assert ports.stored == ended
    assert ports.state.audit == {}
    ports.assert_nothing_follows()


@pytest.mark.requirement("C5")
async def test_a_stop_is_audited_once(ports: Ports) -> None:
    ports.store(a_workflow_run(status=WorkflowRunStatus.IN_PROGRESS))

    await ports.stop()
    await ports.stop()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource, entry.at) == (
        AuditAction.WORKFLOW_RUN_STOPPED,
        "key_operator",
        WORKFLOW_RUN,
        after(60),
    )


async def test_a_run_whose_workflow_no_longer_compiles_is_stopped_too(ports: Ports) -> None:
    ports.state.workflows[WORKFLOW] = [a_workflow(transform("alone"))]

    assert (await ports.stop()).status is WorkflowRunStatus.CANCELLED

    ports.tracer.workflow_finished.assert_called_once()
    ports.tools.release.assert_not_awaited()


# --- who may ---


@pytest.mark.requirement("C6")
async def test_a_runner_stops_a_run_it_started(ports: Ports) -> None:
    ports.store(a_workflow_run(requested_by=ApiKeyId("key_runner")))
    assert (await ports.stop(a_principal(Role.RUNNER))).status is WorkflowRunStatus.CANCELLED


@pytest.mark.requirement("C6")
async def test_a_runner_does_not_stop_a_run_of_another_key(ports: Ports) -> None:
    with refused("run_not_yours"):
        await ports.stop(a_principal(Role.RUNNER))

    assert ports.stored == a_workflow_run()
    assert ports.state.audit == {}
    ports.assert_nothing_follows()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_operators_stop_any_run(ports: Ports, role: Role) -> None:
    assert (await ports.stop(a_principal(role))).status is WorkflowRunStatus.CANCELLED


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.RUNNER))
async def test_a_role_below_runner_stops_nothing(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.stop(a_principal(role))

    assert ports.stored == a_workflow_run()
    ports.assert_nothing_follows()


@pytest.mark.requirement("C6")
async def test_a_run_of_another_organization_is_not_found(ports: Ports) -> None:
    with refused("workflow_run_not_found"):
        await ports.stop(a_stranger())

    assert ports.stored == a_workflow_run()
    ports.assert_nothing_follows()


# --- failures of ports ---


@pytest.fixture
def runs(ports: Ports, mocker: MockerFixture) -> MockType:
    """A store that returns the run, and fails as a test says."""
    store: MockType = mocker.create_autospec(WorkflowRunStore, instance=True)
    store.get.return_value = a_workflow_run()
    ports.runs = store
    return store


async def test_a_stop_that_cannot_be_stored_has_no_effects(ports: Ports, runs: MockType) -> None:
    runs.change.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop()

    ports.assert_nothing_follows()


async def test_a_run_that_cannot_be_read_is_not_stopped(ports: Ports, runs: MockType) -> None:
    runs.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop()

    runs.change.assert_not_awaited()


async def test_a_run_that_was_removed_meanwhile_is_not_found(ports: Ports, runs: MockType) -> None:
    runs.change.return_value = None

    with refused("workflow_run_not_found"):
        await ports.stop()

    assert runs.change.await_args.args[:2] == (ORG, WORKFLOW_RUN)
    ports.assert_nothing_follows()
