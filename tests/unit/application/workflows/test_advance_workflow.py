"""AdvanceWorkflow: what a failing port stops, and what is never stored then. Whole runs are in
`test_workflow_execution`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NoReturn

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.ports import LeaseLost
from application.system.wakeups import Subscription, Wakeups
from application.tracing.ports import WorkflowRecord, WorkflowTracer
from application.workflows.advance_workflow import AdvanceWorkflow
from application.workflows.node_execution import (
    AccountWaits,
    AgentExecutor,
    NodeContext,
    NodeExecutor,
    NodeFailed,
    Succeeded,
    ToolRegistrar,
)
from application.workflows.ports import ClaimedWorkflowRun, WorkflowJournal, WorkflowLease, WorkflowRunStore
from domain.errors import ErrorKind, ServiceError
from domain.ids import RunId
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import NodeDefinition, NodeKind
from domain.workflows.plan import PlannedNode
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from tests.builders import ORG, START
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.workflows.workflow_harness import workflow_leases
from tests.workflow_builders import WORKFLOW_RUN, a_workflow_run, agent, entrypoint, planned, tool, transform, workflow

STORY = (entrypoint(), transform("end"), "start -> end")
AGENT_STORY = (entrypoint(), agent("guide"), "start -> guide")
STARTED = NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, attempt=1)
GUIDE_WAITS = NodeRun(node_id="guide", status=NodeStatus.WAITING, attempt=1, run_id=RunId("run_guide"), run_seq=7)


class Ports:
    """A claimed run of `STORY`. Every node puts out its id, agents too; nothing asks the run to
    stop."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.journal: MockType = mocker.create_autospec(WorkflowJournal, instance=True)
        self.journal.commit.side_effect = self._stored
        self.runs: MockType = mocker.create_autospec(WorkflowRunStore, instance=True)
        self.steps: MockType = mocker.create_autospec(NodeExecutor, instance=True)
        self.agents: MockType = mocker.create_autospec(AgentExecutor, instance=True)
        self.accounts: MockType = mocker.create_autospec(AccountWaits, instance=True)
        self.steps.execute.side_effect = self.agents.execute.side_effect = self._executed
        self.tools: MockType = mocker.create_autospec(ToolRegistrar, instance=True)
        self.tracer: MockType = mocker.create_autospec(WorkflowTracer, instance=True)
        self.control: MockType = mocker.create_autospec(Subscription, instance=True)
        self.control.wait.side_effect = self._never
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.wakeups.subscribe.side_effect = self._subscribed
        self.committed: list[WorkflowRun] = []
        self.begun = asyncio.Event()
        self.claim(*STORY)

    def claim(self, *parts: NodeDefinition | str, nodes: tuple[NodeRun, ...] = (), asked_by: str | None = None) -> None:
        run = a_workflow_run(*nodes).claimed(at=START)
        if asked_by is not None:
            run = a_workflow_run(*nodes, status=WorkflowRunStatus.IN_PROGRESS).asked_to_stop(asked_by, at=START)
        lease = WorkflowLease(run_id=run.id, organization_id=ORG, epoch=run.epoch)
        self.journal.claim.return_value = ClaimedWorkflowRun(lease=lease, run=run, definition=workflow(*parts))

    async def advance(self) -> None:
        advancing = AdvanceWorkflow(
            runs=self.runs,
            journal=self.journal,
            executors=dict.fromkeys(NodeKind, self.steps),
            agents=self.agents,
            accounts=self.accounts,
            tools=self.tools,
            wakeups=self.wakeups,
            active_runs=workflow_leases(self.journal, FixedClock()),
            clock=FixedClock(),
            ids=SequentialIds(),
            tracer=self.tracer,
        )
        async with asyncio.timeout(10):
            await advancing.execute(WORKFLOW_RUN)

    def fail_the_last_commit(self, error: Exception) -> None:
        async def commit(lease: WorkflowLease, run: WorkflowRun, **more: object) -> WorkflowRun:
            if run.status.is_terminal:
                raise error
            return await self._stored(lease, run)

        self.journal.commit.side_effect = commit

    def hold_nodes(self) -> None:
        """Nodes are executed without an end."""

        async def held(node: PlannedNode, run: NodeRun, context: NodeContext) -> NoReturn:
            self.begun.set()
            await self._never()

        self.steps.execute.side_effect = held

    @property
    def ended(self) -> WorkflowRun:
        """The run as the last commit stored it."""
        assert self.committed[-1].status.is_terminal
        return self.committed[-1]

    def assert_no_end(self) -> None:
        assert not any(run.status.is_terminal for run in self.committed)
        self.tracer.workflow_finished.assert_not_called()
        self.tools.release.assert_not_awaited()

    def assert_nothing_is_done(self) -> None:
        self.journal.commit.assert_not_awaited()
        self.steps.execute.assert_not_awaited()
        self.agents.execute.assert_not_awaited()

    async def _stored(self, lease: WorkflowLease, run: WorkflowRun, **more: object) -> WorkflowRun:
        self.committed.append(run)
        return run

    async def _executed(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded:
        return Succeeded(output=node.id)

    async def _never(self, timeout_s: float = 0) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    @asynccontextmanager
    async def _subscribed(self, topic: str) -> AsyncGenerator[MockType, None]:
        yield self.control


@pytest.fixture
async def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- claiming ---


async def test_a_run_that_is_not_claimed_is_not_executed(ports: Ports) -> None:
    ports.journal.claim.return_value = None
    await ports.advance()
    ports.assert_nothing_is_done()


async def test_nothing_is_executed_if_the_claim_cannot_be_stored(ports: Ports) -> None:
    ports.journal.claim.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    ports.assert_nothing_is_done()


async def test_a_run_whose_stop_signals_cannot_be_received_is_not_claimed(ports: Ports) -> None:
    ports.wakeups.subscribe.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    ports.journal.claim.assert_not_awaited()


# --- commits ---


@pytest.mark.requirement("F4")
async def test_the_outcome_of_a_node_is_stored_together_with_the_start_of_the_next(ports: Ports) -> None:
    await ports.advance()

    statuses = [{node_id: node.status for node_id, node in run.nodes.items()} for run in ports.committed]
    assert statuses == [
        {"start": NodeStatus.RUNNING},
        {"start": NodeStatus.SUCCEEDED, "end": NodeStatus.RUNNING},
        {"start": NodeStatus.SUCCEEDED, "end": NodeStatus.SUCCEEDED},
    ]
    assert [run.status.is_terminal for run in ports.committed] == [False, False, True]


async def test_an_ended_run_is_traced_and_loses_its_tools(ports: Ports) -> None:
    await ports.advance()

    record = WorkflowRecord(run=ports.ended, definition=workflow(*STORY))
    ports.tracer.workflow_finished.assert_called_once_with(record)
    ports.tools.release.assert_awaited_once_with(ports.ended, planned(*STORY))


@pytest.mark.requirement("F4")
async def test_a_node_whose_start_cannot_be_stored_is_not_executed(ports: Ports) -> None:
    ports.journal.commit.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    ports.steps.execute.assert_not_awaited()
    ports.assert_no_end()


async def test_a_run_whose_end_cannot_be_stored_is_not_traced_and_keeps_its_tools(ports: Ports) -> None:
    ports.fail_the_last_commit(storage_away())

    with refused("storage_unavailable"):
        await ports.advance()

    ports.assert_no_end()


@pytest.mark.requirement("E4")
async def test_a_worker_that_lost_its_lease_at_a_commit_writes_nothing_more(ports: Ports) -> None:
    ports.fail_the_last_commit(LeaseLost(WORKFLOW_RUN))

    await ports.advance()

    assert ports.journal.commit.await_count == 3
    ports.assert_no_end()


@pytest.mark.requirement("E4")
async def test_a_lease_that_is_lost_while_an_agents_run_is_noted_is_no_failure_of_the_node(ports: Ports) -> None:
    async def begins_a_run(node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded:
        ports.journal.commit.side_effect = LeaseLost(WORKFLOW_RUN)
        await context.note_run(node.id, RunId("run_guide"))
        raise AssertionError("the lease is lost")

    ports.agents.execute.side_effect = begins_a_run
    ports.claim(*AGENT_STORY)

    await ports.advance()

    assert ports.committed[-1].nodes["guide"].status is NodeStatus.RUNNING
    ports.agents.cancel.assert_not_awaited()
    ports.assert_no_end()


# --- executors ---


@pytest.mark.parametrize(
    "error",
    [RuntimeError("a secret"), TimeoutError("a secret"), ServiceError("broken", ErrorKind.INTERNAL, "a secret")],
    ids=lambda error: type(error).__name__,
)
async def test_an_unexpected_error_fails_the_node_with_a_reference_and_without_its_text(
    ports: Ports, error: Exception
) -> None:
    ports.steps.execute.side_effect = error

    await ports.advance()

    run = ports.ended
    assert run.error is not None
    assert (run.status, run.failed_node, run.error.code) == (WorkflowRunStatus.FAILED, "start", "internal_error")
    assert "ref_" in run.error.detail
    assert "secret" not in run.error.detail


async def test_a_node_that_has_time_left_is_not_said_to_have_taken_too_long(ports: Ports) -> None:
    ports.claim(entrypoint(), transform("end", timeout_s=60), "start -> end", nodes=(STARTED,))
    ports.steps.execute.side_effect = TimeoutError

    await ports.advance()

    assert ports.ended.error is not None
    assert ports.ended.error.code == "internal_error"


@pytest.mark.requirement("F4")
async def test_an_unavailable_database_leaves_the_node_to_the_next_worker(ports: Ports) -> None:
    ports.steps.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    assert ports.committed[-1].nodes["start"].status is NodeStatus.RUNNING
    ports.assert_no_end()


async def test_another_service_that_is_unavailable_fails_the_node(ports: Ports) -> None:
    ports.steps.execute.side_effect = ServiceError("vault_away", ErrorKind.UNAVAILABLE, "Vault does not answer.")

    await ports.advance()

    assert ports.ended.status is WorkflowRunStatus.FAILED


@pytest.mark.parametrize(
    ("error", "code"),
    [(NodeFailed("secret_missing", "There is no such secret."), "secret_missing"), (RuntimeError(), "internal_error")],
)
async def test_a_tool_that_cannot_be_registered_fails_its_node_and_the_agent_that_needs_it(
    ports: Ports, error: Exception, code: str
) -> None:
    ports.claim(*AGENT_STORY, tool("weather"), "weather -> guide.tools")
    ports.tools.execute.side_effect = error

    await ports.advance()

    failed = ports.ended.nodes["weather"].error
    assert failed is not None
    assert (ports.ended.status, failed.code) == (WorkflowRunStatus.FAILED, code)
    ports.agents.execute.assert_not_awaited()
    ports.tools.release.assert_awaited_once()


async def test_a_workflow_that_no_longer_compiles_fails_without_executing_a_node(ports: Ports) -> None:
    ports.claim(transform("alone"))

    await ports.advance()

    assert ports.ended.error is not None
    assert (ports.ended.status, ports.ended.error.code) == (WorkflowRunStatus.FAILED, "workflow_invalid")
    ports.steps.execute.assert_not_awaited()
    ports.tracer.workflow_finished.assert_called_once()


# --- runs of agents, and stops ---


async def test_nothing_is_stored_while_the_run_of_a_waiting_agent_cannot_be_read(ports: Ports) -> None:
    ports.claim(*AGENT_STORY, nodes=(STARTED, GUIDE_WAITS))
    ports.agents.has_moved_on.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    ports.agents.has_moved_on.assert_awaited_once_with(ORG, RunId("run_guide"), since_seq=7)
    ports.assert_nothing_is_done()


async def test_a_stop_cancels_the_runs_of_agents_in_the_name_of_who_asked_for_it(ports: Ports) -> None:
    ports.claim(*AGENT_STORY, nodes=(STARTED, GUIDE_WAITS), asked_by="key_ann")
    ports.agents.has_moved_on.return_value = False

    await ports.advance()

    ports.agents.cancel.assert_awaited_once_with(ORG, RunId("run_guide"), actor="key_ann")
    assert ports.ended.status is WorkflowRunStatus.CANCELLED
    ports.agents.execute.assert_not_awaited()


async def test_a_run_whose_agents_run_cannot_be_cancelled_is_not_stored_as_ended(ports: Ports) -> None:
    ports.claim(*AGENT_STORY, nodes=(STARTED, GUIDE_WAITS), asked_by="key_ann")
    ports.agents.has_moved_on.return_value = False
    ports.agents.cancel.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    ports.assert_no_end()


async def test_a_worker_that_cannot_read_whether_to_stop_ends_its_nodes_and_stores_no_outcome(ports: Ports) -> None:
    ports.hold_nodes()
    ports.control.wait.side_effect = None
    ports.control.wait.return_value = True
    ports.runs.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.advance()

    assert len(ports.committed) == 1
    ports.assert_no_end()


# --- a worker that stops ---


async def test_a_cancelled_worker_hands_the_run_back_as_queued(ports: Ports) -> None:
    ports.hold_nodes()
    working = asyncio.create_task(ports.advance())
    await asyncio.wait_for(ports.begun.wait(), 5)

    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert ports.committed[-1].status is WorkflowRunStatus.QUEUED
    ports.assert_no_end()


@pytest.mark.parametrize("error", [storage_away(), LeaseLost(WORKFLOW_RUN)], ids=lambda error: type(error).__name__)
async def test_a_cancelled_worker_ends_even_if_the_run_cannot_be_handed_back(ports: Ports, error: Exception) -> None:
    ports.hold_nodes()
    working = asyncio.create_task(ports.advance())
    await asyncio.wait_for(ports.begun.wait(), 5)
    ports.journal.commit.side_effect = error

    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert ports.journal.commit.await_count == 2
    ports.assert_no_end()
