"""Executes a workflow run on this worker until it has ended, waits for a person, or is handed
back."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from application.runs.execution.active_runs import ActiveRuns
from application.runs.execution.interruption import Interrupted, StopSignal
from application.runs.ports import LeaseLost
from application.system.ports import Clock, IdSource
from application.system.wakeups import Subscription, Wakeups
from application.tracing.ports import WorkflowRecord, WorkflowTracer
from application.workflows.node_execution import (
    AccountWaits,
    AgentExecutor,
    AwaitsAnswer,
    NodeContext,
    NodeExecutor,
    NodeFailed,
    Registered,
    Succeeded,
    ToolRegistrar,
)
from application.workflows.node_waits import NodeWaits
from application.workflows.output_bounds import output_fault
from application.workflows.ports import (
    ClaimedWorkflowRun,
    WorkflowJournal,
    WorkflowLease,
    WorkflowRunStore,
    workflow_control_topic,
)
from application.workflows.workflow_audit import ended_entry
from domain.audit.event import AuditEvent
from domain.errors import is_storage_away
from domain.ids import RunId, WorkflowRunId
from domain.tools.wired import RegisteredTool
from domain.workflows.compiler import compile_workflow
from domain.workflows.decision import Outlook, WorkflowDecision, abandoned, decide
from domain.workflows.execution import NODE_TIMEOUT, NodeError, NodeRun, NodeStatus
from domain.workflows.graph import NodeKind, NodeMode
from domain.workflows.plan import Plan, PlannedNode
from domain.workflows.run import WorkflowRun, WorkflowRunStatus

logger = logging.getLogger(__name__)

CONTROL_REREAD_S = 5.0
"""Interval of checks for a cancel request without a signal."""

NodeOutcome = Succeeded | AwaitsAnswer | Registered | NodeError


class AdvanceWorkflow:
    """Rules:
    - Claiming decides who executes. A lost lease writes nothing.
    - The outcome of a node is stored together with its consequences, so a finished node never runs
      again.
    - An unfinished node of a former worker is continued, repeated if that is harmless, or failed as
      unknown.
    - Cancelling the workflow run also cancels the runs of its agents.
    """

    def __init__(
        self,
        *,
        runs: WorkflowRunStore,
        journal: WorkflowJournal,
        executors: Mapping[NodeKind, NodeExecutor],
        agents: AgentExecutor,
        accounts: AccountWaits,
        tools: ToolRegistrar,
        wakeups: Wakeups,
        active_runs: ActiveRuns[WorkflowLease],
        clock: Clock,
        ids: IdSource,
        tracer: WorkflowTracer,
    ) -> None:
        self._tracer = tracer
        self._runs = runs
        self._journal = journal
        self._executors: dict[NodeKind, NodeExecutor] = {**executors, NodeKind.AGENT: agents}
        self._agents = agents
        self.waits = NodeWaits(agents, accounts)
        self._tools = tools
        self._wakeups = wakeups
        self._active_runs = active_runs
        self._clock = clock
        self._ids = ids

    async def execute(self, run_id: WorkflowRunId) -> None:
        """Return when this worker is done with the run, or at once if it cannot be claimed.
        Cancelling this coroutine hands the run back."""
        async with self._wakeups.subscribe(workflow_control_topic(run_id)) as control:
            active, began = self._active_runs, self._clock.monotonic()
            claimed = await self._journal.claim(run_id, active.worker_id, lease_s=active.lease_s, at=self._clock.now())
            if claimed is None:
                return
            ids = {"workflow_run_id": run_id, "organization_id": claimed.run.organization_id}
            stop = StopSignal()
            active.add(claimed.lease, stop, claimed_at=began)
            drive = _Drive(self, claimed, control, stop)
            try:
                await drive.to_its_end()
            except (LeaseLost, Interrupted):
                logger.warning("lease lost; workflow run abandoned", extra=ids)
            except asyncio.CancelledError:
                await asyncio.shield(drive.hand_back())
                raise
            finally:
                active.remove(claimed.lease)

    # --- interface for _Drive ---

    async def node_outcome(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> NodeOutcome:
        """Execute a node within its timeout. Every failure is a value."""
        ids = {"workflow_run_id": context.workflow_run_id, "node_id": node.id}
        # A node that waits for a person has its own deadline.
        deadline = asyncio.timeout(None if node.kind is NodeKind.HUMAN_INPUT else node.settings.timeout_s)
        try:
            async with deadline:
                if node.mode is NodeMode.TOOL:
                    return await self._tools.execute(node, run, context)
                outcome = await self._executors[node.kind].execute(node, run, context)
            too_large = await output_fault(outcome.output) if isinstance(outcome, Succeeded) else None
            return too_large or outcome
        except NodeFailed as failure:
            return failure.error
        except LeaseLost:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                detail = f"The node took longer than {node.settings.timeout_s:g} s."
                return NodeError(code=NODE_TIMEOUT, detail=detail, retryable=True)
            if is_storage_away(error):
                raise  # not a failure of the node: the next worker continues it when the database is back
            reference = self._ids.new("ref")
            logger.exception("a node failed unexpectedly", extra={**ids, "reference": reference})
            detail = f"The node failed because of an internal error (reference {reference})."
            return NodeError(code="internal_error", detail=detail)

    async def commit(
        self,
        claimed: ClaimedWorkflowRun,
        run: WorkflowRun,
        registered: tuple[RegisteredTool, ...],
        noted: tuple[AuditEvent, ...],
    ) -> WorkflowRun:
        """Store the run, with tools that became ready and audit entries that nodes noted."""
        now = self._clock.now()
        is_over = run.status.is_terminal
        audit = (*noted, ended_entry(run, ids=self._ids, at=now)) if is_over else noted
        stored = await self._journal.commit(claimed.lease, run, at=now, audit=audit, registered=registered)
        if is_over:
            self._tracer.workflow_finished(WorkflowRecord(run=stored, definition=claimed.definition))
            logger.info("a workflow run has ended", extra={"workflow_run_id": run.id, "status": run.status.value})
        return stored

    async def release_tools(self, run: WorkflowRun, plan: Plan) -> None:
        await self._tools.release(run, plan)

    async def cancel_requested_by(self, run: WorkflowRun) -> str | None:
        """The actor that requested cancellation, or None."""
        stored = await self._runs.get(run.organization_id, run.id)
        return None if stored is None else stored.cancel_requested_by

    async def cancel_agent(self, run: WorkflowRun, run_id: RunId) -> None:
        """Cancel the run of an abandoned agent node."""
        await self._agents.cancel(run.organization_id, run_id, actor=run.cancel_requested_by or "system")

    @property
    def clock(self) -> Clock:
        return self._clock


class _Drive:
    """One lease of this worker on a workflow run."""

    def __init__(
        self, advance: AdvanceWorkflow, claimed: ClaimedWorkflowRun, control: Subscription, stop: StopSignal
    ) -> None:
        self._advance = advance
        self._claimed = claimed
        self._control = control
        self._stop = stop
        self._run = claimed.run
        self._nodes = dict(claimed.run.nodes)
        self._registered: dict[str, RegisteredTool] = {}
        self._noted: list[AuditEvent] = []
        self._tasks: dict[str, asyncio.Task[NodeOutcome]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()

    async def to_its_end(self) -> None:
        """Advance until the run has ended or waits. Raises LeaseLost and Interrupted."""
        try:
            plan = compile_workflow(self._claimed.definition).plan
            if plan is None:
                detail = "This version of Dragoman no longer accepts the workflow."
                await self._end(WorkflowRunStatus.FAILED, error=NodeError(code="workflow_invalid", detail=detail))
                return
            await self._take_up(plan)
            while await self._step(plan):
                pass
            if self._run.status.is_terminal:
                await self._advance.release_tools(self._run, plan)
        finally:
            await self._stop_tasks(tuple(self._tasks))
            if watches := self._end_watches(tuple(self._watches)):
                await asyncio.wait(watches)

    async def hand_back(self) -> None:
        """Hand the run back to the queue; the next worker continues it."""
        try:
            async with self._writing:
                if self._run.status is WorkflowRunStatus.IN_PROGRESS:
                    self._run = await self._advance.commit(
                        self._claimed,
                        replace(self._run, nodes=self._nodes).handed_back(),
                        tuple(self._registered.values()),
                        tuple(self._noted),
                    )
        except LeaseLost:
            logger.warning("lease lost; workflow run abandoned", extra={"workflow_run_id": self._run.id})
        except Exception:
            logger.exception("a workflow run could not be handed back", extra={"workflow_run_id": self._run.id})

    async def _take_up(self, plan: Plan) -> None:
        """Continue the nodes that a former worker started, and those that need not wait any
        more."""
        now = self._advance.clock.now()
        for node_id, node in tuple(self._nodes.items()):
            if node.status is NodeStatus.RUNNING:
                self._nodes[node_id] = node.interrupted(plan.by_id[node_id], at=now)
            elif node.may_continue and await self._advance.waits.is_over(self._run, node):
                self._nodes[node_id] = node.continued(at=now)

    async def _step(self, plan: Plan) -> bool:
        """Decide, store the decision, act on it, and wait for an event. False when the run is
        done."""
        if self._run.cancel_requested_by is not None:
            self._nodes = abandoned(plan, self._nodes, now=self._advance.clock.now())
            await self._end(WorkflowRunStatus.CANCELLED)
            return False
        decision = decide(plan, self._nodes, now=self._advance.clock.now())
        given_up = [node.node_id for node in decision.changed if node.node_id in self._tasks or node.run_id is not None]
        self._nodes |= {node.node_id: node for node in (*decision.start, *decision.changed)}
        if decision.outlook in (Outlook.COMPLETED, Outlook.FAILED):
            await self._finish(decision)
            return False
        if decision.outlook is Outlook.WAITING and not self._tasks:
            await self._store(self._run.suspended(wake_at=decision.wake_at))
            await self._advance.waits.began(self._run)
            return False
        await self._give_up(given_up)
        await self._store(self._run)
        for node_id, node in self._nodes.items():
            if node.status is NodeStatus.RUNNING and node_id not in self._tasks:
                self._begin(plan, plan.by_id[node_id], node)
        self._watch()
        await self._wait(decision)
        await self._collect(plan)
        return True

    async def _finish(self, decision: WorkflowDecision) -> None:
        if decision.outlook is Outlook.COMPLETED:
            await self._end(WorkflowRunStatus.COMPLETED, decision)
        else:
            await self._end(WorkflowRunStatus.FAILED, decision, error=decision.error, failed_node=decision.failed_node)

    async def _end(
        self,
        status: WorkflowRunStatus,
        decision: WorkflowDecision | None = None,
        *,
        error: NodeError | None = None,
        failed_node: str | None = None,
    ) -> None:
        """Cancel agents' runs first: after an interruption the next worker repeats this."""
        begun = [node_id for node_id, node in self._run.nodes.items() if node.run_id and not node.status.is_final]
        await self._give_up(list(dict.fromkeys((*self._tasks, *begun))))
        now = self._advance.clock.now()
        output = None if decision is None else decision.output
        ended = replace(self._run, nodes=self._nodes).ended(
            status, at=now, output=output, error=error, failed_node=failed_node
        )
        self._nodes = dict(ended.nodes)
        await self._store(ended)

    async def _give_up(self, node_ids: list[str]) -> None:
        """Stop executing the nodes, and cancel their agents' runs."""
        await self._stop_tasks(tuple(node_ids))
        for node_id in node_ids:
            run_id = self._nodes[node_id].run_id
            if run_id is not None:
                await self._advance.cancel_agent(self._run, run_id)

    async def _stop_tasks(self, node_ids: tuple[str, ...]) -> None:
        stopped = [task for node_id in node_ids if (task := self._tasks.pop(node_id, None)) is not None]
        for task in stopped:
            task.cancel()
        if stopped:
            await asyncio.wait(stopped)
        for task in stopped:
            if not task.cancelled():
                task.exception()  # the node is abandoned: its outcome is not needed

    def _watch(self) -> None:
        """Wait for what lets waiting nodes continue."""
        waiting = {node_id: node for node_id, node in self._nodes.items() if node.may_continue}
        self._end_watches(tuple(self._watches.keys() - waiting.keys()))
        for node_id in waiting.keys() - self._watches.keys():
            self._watches[node_id] = asyncio.create_task(
                self._advance.waits.over(self._run, waiting[node_id]), name=f"wait of node {node_id} of {self._run.id}"
            )

    def _end_watches(self, node_ids: tuple[str, ...]) -> list[asyncio.Task[None]]:
        ended = [self._watches.pop(node_id) for node_id in node_ids]
        for watch in ended:
            watch.cancel()
        return ended

    def _begin(self, plan: Plan, node: PlannedNode, run: NodeRun) -> None:
        context = NodeContext(
            organization_id=self._run.organization_id,
            workflow_run_id=self._run.id,
            requested_by=self._run.requested_by,
            run_input=self._run.input,
            nodes=dict(self._nodes),
            plan=plan,
            team=self._run.team,
            note_run=self._note_run,
            note_audit=self._noted.append,
        )
        self._tasks[node.id] = asyncio.create_task(
            self._advance.node_outcome(node, run, context), name=f"node {node.id} of {self._run.id}"
        )

    async def _note_run(self, node_id: str, run_id: RunId) -> None:
        self._nodes[node_id] = replace(self._nodes[node_id], run_id=run_id)
        await self._store(self._run)

    async def _wait(self, decision: WorkflowDecision) -> None:
        """Wait for a node, a cancel request, or the next due time."""
        wait_s = CONTROL_REREAD_S
        if decision.wake_at is not None:
            wait_s = min(wait_s, max(0.0, (decision.wake_at - self._advance.clock.now()).total_seconds()))
        bell = asyncio.create_task(self._control.wait(wait_s))
        try:
            with self._stop.interruptible(None):
                happening = (bell, *self._tasks.values(), *self._watches.values())
                await asyncio.wait(happening, return_when=asyncio.FIRST_COMPLETED)
            if bell.done():
                actor = await self._advance.cancel_requested_by(self._run)
                self._run = replace(self._run, cancel_requested_by=actor)
        finally:
            bell.cancel()
            await asyncio.wait((bell,))

    async def _collect(self, plan: Plan) -> None:
        now = self._advance.clock.now()
        for node_id in [node_id for node_id, watch in self._watches.items() if watch.done()]:
            self._watches.pop(node_id).result()
            self._nodes[node_id] = self._nodes[node_id].continued(at=now)
        for node_id in [node_id for node_id, task in self._tasks.items() if task.done()]:
            outcome, run = self._tasks.pop(node_id).result(), self._nodes[node_id]
            match outcome:
                case Succeeded(output=output, handle=handle):
                    self._nodes[node_id] = run.succeeded(output, at=now, handle=handle)
                case Registered(tool=tool):
                    self._registered[node_id] = tool
                    self._nodes[node_id] = run.ready(at=now)
                case AwaitsAnswer(asked=asked, due_at=due_at, run_seq=run_seq):
                    self._nodes[node_id] = run.waiting(due_at=due_at, asked=asked, run_seq=run_seq)
                case error:
                    if run.run_id is not None:  # of an agent that took too long
                        await self._advance.cancel_agent(self._run, run.run_id)
                    self._nodes[node_id] = run.attempt_failed(error, plan.by_id[node_id], at=now)

    async def _store(self, run: WorkflowRun) -> None:
        async with self._writing:
            wanted = replace(run, nodes=dict(self._nodes))
            if wanted != self._run:
                tools, noted = dict(self._registered), tuple(self._noted)
                self._run = await self._advance.commit(self._claimed, wanted, tuple(tools.values()), noted)
                for node_id in tools:
                    del self._registered[node_id]
                del self._noted[: len(noted)]
