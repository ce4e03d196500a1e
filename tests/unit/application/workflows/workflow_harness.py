"""A worker for workflow runs over in-memory tables, with executors that do as they are told, and
ways to kill it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.system.ports import Clock
from application.workflows.advance_workflow import AdvanceWorkflow
from application.workflows.local_steps import LocalSteps
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Registered, Succeeded
from application.workflows.ports import ClaimedWorkflowRun, WorkflowJournal, WorkflowLease
from application.workflows.resume_authorized_workflow_runs import ResumeAuthorizedWorkflowRuns
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError
from domain.ids import ApiKeyId, OrganizationId, RunId, WorkerId, WorkflowId, WorkflowRunId
from domain.json_value import JsonValue
from domain.tools.wired import RegisteredTool
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import NodeDefinition, NodeKind, Workflow
from domain.workflows.plan import Plan, PlannedNode
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from tests.builders import KEY, ORG, an_audit_event
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.recording_tracer import RecordingTracer
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import START, FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.unit.application.runs.doubles import SubmittedRuns
from tests.workflow_builders import workflow

RUN = WorkflowRunId("wfr_1")
LEASE_S = 15.0
STARTED = an_audit_event(900, action=AuditAction.WORKFLOW_RUN_STARTED, resource=RUN)


Said: TypeAlias = "JsonValue | NodeFailed | ServiceError | AwaitsAnswer"
"""What a node comes to."""


class Killed(BaseException):
    """The process is no more: nothing that would tidy up is executed."""


def workflow_leases(journal: WorkflowJournal, clock: Clock) -> ActiveRuns[WorkflowLease]:
    """The workflow runs of one worker."""
    settings = LeaseSettings(lease_s=LEASE_S)
    return ActiveRuns(leases=journal, clock=clock, worker_id=WorkerId("worker_1"), settings=settings)


class MortalJournal:
    """The journal of a worker that dies with a commit: before it, or right after."""

    def __init__(self, store: InMemoryWorkflowRunStore) -> None:
        self._store = store
        self.dies_at: int | None = None
        self.dies_before = False
        self.commits = 0

    async def claim(
        self, run_id: WorkflowRunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedWorkflowRun | None:
        return await self._store.claim(run_id, worker_id, lease_s=lease_s, at=at)

    async def renew(
        self, worker_id: WorkerId, leases: tuple[WorkflowLease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[WorkflowRunId]:
        return await self._store.renew(worker_id, leases, lease_s=lease_s, at=at)

    async def commit(
        self,
        lease: WorkflowLease,
        run: WorkflowRun,
        *,
        at: datetime,
        audit: tuple[AuditEvent, ...] = (),
        registered: tuple[RegisteredTool, ...] = (),
    ) -> WorkflowRun:
        if self.is_dead():
            raise Killed
        self.commits += 1
        if self.is_dead() and self.dies_before:
            raise Killed
        stored = await self._store.commit(lease, run, at=at, audit=audit, registered=registered)
        if self.is_dead():
            raise Killed
        return stored

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[WorkflowRunId, ...]:
        return await self._store.recoverable(at=at, limit=limit, sole_owner=sole_owner)

    def is_dead(self) -> bool:
        return self.dies_at is not None and self.commits >= self.dies_at


@dataclass
class Told:
    """An executor whose nodes come to what was said of them: a value, a failure, or nothing until
    `go`."""

    outcomes: dict[str, list[Said]] = field(default_factory=dict)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)
    begun: dict[str, asyncio.Event] = field(default_factory=dict)
    cancelled: list[RunId] = field(default_factory=list)
    runs: dict[str, RunId] = field(default_factory=dict)
    seqs: dict[RunId, int] = field(default_factory=dict)
    moving: asyncio.Event = field(default_factory=asyncio.Event)

    def hold(self, node_id: str) -> None:
        self.held[node_id] = asyncio.Event()
        self.begun[node_id] = asyncio.Event()

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded | AwaitsAnswer:
        self.executed.append(node.id)
        if node.kind is NodeKind.AGENT and run.run_id is None:
            await context.note_run(node.id, self.runs.setdefault(node.id, RunId(f"run_{node.id}")))
        if node.id in self.held:
            self.begun[node.id].set()
            await self.held[node.id].wait()
        left = self.outcomes.get(node.id, [])
        outcome = left.pop(0) if len(left) > 1 else left[0] if left else f"{node.id}!"
        if isinstance(outcome, NodeFailed | ServiceError):
            raise outcome
        if isinstance(outcome, AwaitsAnswer):
            return outcome
        return Succeeded(output=outcome)

    async def cancel(self, organization_id: OrganizationId, run_id: RunId, *, actor: str) -> None:
        self.cancelled.append(run_id)

    def move_on(self, run_id: RunId, seq: int) -> None:
        """The run of an agent does not wait for the same any more."""
        self.seqs[run_id] = seq
        self.moving.set()

    async def has_moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> bool:
        return self.seqs.get(run_id, since_seq) != since_seq

    async def moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> None:
        while not await self.has_moved_on(organization_id, run_id, since_seq=since_seq):
            self.moving.clear()
            await self.moving.wait()


class Registering:
    """Makes tools of nodes, or what was `told` of them; and keeps which runs it was told to
    release."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self.released: list[WorkflowRunId] = []

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Registered:
        await self._told.execute(node, run, context)
        return Registered(tool=a_registered_tool(node.id, context.workflow_run_id))

    async def release(self, run: WorkflowRun, plan: Plan) -> None:
        self.released.append(run.id)


def a_registered_tool(node_id: str, run_id: WorkflowRunId = RUN, *, sealed: bytes = b"sealed") -> RegisteredTool:
    return RegisteredTool(
        organization_id=ORG,
        workflow_run_id=run_id,
        node_id=node_id,
        kind=NodeKind.HTTP_REQUEST.value,
        sealed=sealed,
        registered_at=START,
    )


class WorkflowHarness:
    """One run of one workflow."""

    def __init__(self, *parts: NodeDefinition | str) -> None:
        self.state = InMemoryState()
        self.wakeups = InProcessWakeups()
        self.runs = InMemoryWorkflowRunStore(self.state, self.wakeups)
        self.journal = MortalJournal(self.runs)
        self.clock = FixedClock()
        self.told = Told()
        self.tracer = RecordingTracer()
        self.registering = Registering(self.told)
        self.worker_id = WorkerId("worker_1")
        self.authorizer = InMemoryAuthorizer(expires_at=START)
        self.queue = SubmittedRuns()
        self.accounts = ResumeAuthorizedWorkflowRuns(
            runs=self.runs,
            queue=self.queue,
            servers=InMemoryMcpServerStore(self.state),
            authorizer=self.authorizer,
            wakeups=self.wakeups,
            clock=self.clock,
            ids=SequentialIds(),
        )
        self.active_runs = workflow_leases(self.journal, self.clock)
        saved = Workflow(
            id=WorkflowId("wfl_1"),
            organization_id=ORG,
            version=1,
            definition=workflow(*parts),
            created_at=START,
            updated_at=START,
        )
        self.state.workflows[saved.id] = [saved]

    async def start(self, given: JsonValue = None, *, requested_by: ApiKeyId = KEY) -> None:
        run = WorkflowRun(
            id=RUN,
            organization_id=ORG,
            workflow_id=WorkflowId("wfl_1"),
            workflow_version=1,
            status=WorkflowRunStatus.QUEUED,
            input=given,
            requested_by=requested_by,
            created_at=START,
        )
        await self.runs.start(run, STARTED)

    def worker(self) -> AdvanceWorkflow:
        local = LocalSteps(expressions=JmesPathExpressions(), clock=self.clock)
        kinds = (NodeKind.ENTRYPOINT, NodeKind.TRANSFORM, NodeKind.CONDITION, NodeKind.HUMAN_INPUT)
        executors: Mapping[NodeKind, LocalSteps | Told] = {
            **dict.fromkeys(kinds, local),
            NodeKind.HTTP_REQUEST: self.told,
            NodeKind.MCP_SERVER: self.told,
        }
        return AdvanceWorkflow(
            runs=self.runs,
            journal=self.journal,
            executors=executors,
            agents=self.told,
            accounts=self.accounts,
            tools=self.registering,
            wakeups=self.wakeups,
            active_runs=self.active_runs,
            clock=self.clock,
            ids=SequentialIds(),
            tracer=self.tracer,
        )

    async def advance(self) -> WorkflowRun:
        """Until the worker has done what it can."""
        async with asyncio.timeout(10):
            await self.worker().execute(RUN)
        return await self.run()

    async def run(self) -> WorkflowRun:
        stored = await self.runs.get(ORG, RUN)
        assert stored is not None
        return stored

    async def events(self) -> list[WorkflowEvent]:
        return list(await self.runs.events(ORG, RUN, after_seq=0, limit=1_000))

    async def killed_at(self, commit: int, *, before: bool = False) -> None:
        """A worker that is killed with that commit, and the time that it takes until that is
        known."""
        self.journal.commits, self.journal.dies_at, self.journal.dies_before = 0, commit, before
        try:
            async with asyncio.timeout(10):
                await self.worker().execute(RUN)
        except Killed:
            pass
        except BaseExceptionGroup as group:
            if group.split(Killed)[1] is not None:
                raise
        self.journal.dies_at = None
        self.clock.advance(LEASE_S)
        now = self.clock.now() + timedelta(seconds=1)
        await self.runs.recoverable(at=now, limit=10)

    async def status(self, node_id: str) -> NodeStatus:
        return (await self.run()).nodes[node_id].status
