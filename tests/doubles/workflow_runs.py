"""Runs of workflows in memory."""

from dataclasses import replace
from datetime import datetime, timedelta

from application.runs.idempotency import idempotency_key_reused
from application.runs.new_run import KEY_LIFETIME, IdempotencyKey
from application.runs.ports import LeaseLost
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from application.workflows.ports import (
    ClaimedWorkflowRun,
    Decide,
    WorkflowLease,
    WorkflowRunFilter,
    workflow_control_topic,
    workflow_events_topic,
)
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.identity.impersonation import who_acts
from domain.ids import OrganizationId, WorkerId, WorkflowRunId
from domain.runs.run import RunStatus
from domain.tools.wired import RegisteredTool
from domain.workflows.execution import NodeRun
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus, events_between
from tests.doubles.owners import require_group, seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun


class InMemoryWorkflowRunStore:
    """The `WorkflowRunStore` and `WorkflowJournal` ports, over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def start(
        self, run: WorkflowRun, audit: AuditEvent, *, idempotency: IdempotencyKey | None = None
    ) -> WorkflowRun:
        """Store a QUEUED run, or give the one that the key named."""
        if idempotency is not None:
            earlier = await self.started_before(run.organization_id, idempotency, at=run.created_at)
            if earlier is not None:
                return earlier
        used = {workflow.id: workflow for workflow in self._state.workflows_in_use(run.organization_id)}
        if run.workflow_id not in used:
            raise not_found("workflow", run.workflow_id)
        require_group(self._state, run.organization_id, run.team, former=used[run.workflow_id].team)
        stored = self._state.workflow_runs[run.id] = StoredWorkflowRun(run)
        stored.key = idempotency
        self._state.record(audit)
        return self._write(stored, None, run, at=run.created_at)

    async def started_before(
        self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
    ) -> WorkflowRun | None:
        """The run that the key named before, as it stands."""
        for stored in self._state.workflow_runs.values():
            of_key = stored.key is not None and stored.key.key == key.key
            lives = stored.run.created_at > at - KEY_LIFETIME
            if of_key and lives and stored.run.organization_id == organization_id:
                if stored.key != key:
                    raise idempotency_key_reused()
                return stored.run
        return None

    async def get(self, organization_id: OrganizationId, run_id: WorkflowRunId) -> WorkflowRun | None:
        """The run with its nodes, or None."""
        stored = self._of(organization_id, run_id)
        return None if stored is None else stored.run

    async def page(
        self, organization_id: OrganizationId, wanted: WorkflowRunFilter, request: PageRequest
    ) -> Page[WorkflowRun]:
        """Runs, newest first, in outline."""
        found = [
            replace(stored.run, input=None, output=None, nodes={})
            for stored in self._state.workflow_runs.values()
            if stored.run.organization_id == organization_id
            and wanted.workflow_id in (None, stored.run.workflow_id)
            and wanted.status in (None, stored.run.status)
            and wanted.requested_by in (None, stored.run.requested_by, who_acts(stored.run.requested_by))
            and wanted.is_unfinished in (None, not stored.run.status.is_terminal)
        ]
        found = seen(self._state, request.teams, found, lambda run: run.id)
        return newest_first(found, lambda run: by_time(run.created_at, run.id), request)

    async def events(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, *, after_seq: int, limit: int
    ) -> tuple[WorkflowEvent, ...]:
        """Events with a higher seq, in order."""
        stored = self._of(organization_id, run_id)
        return () if stored is None else tuple(event for event in stored.events if event.seq > after_seq)[:limit]

    async def definition(self, organization_id: OrganizationId, run: WorkflowRun) -> WorkflowDefinition:
        """What the run executes."""
        return self._definition(run)

    async def change(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, decide: Decide, *, at: datetime, audit: AuditEvent
    ) -> WorkflowRun | None:
        stored = self._of(organization_id, run_id)
        if stored is None:
            return None
        changed = decide(stored.run)
        self._wakeups.wake(workflow_control_topic(run_id))
        if changed is stored.run:
            return changed
        self._state.record(audit)
        return self._write(stored, stored.run, changed, at=at)

    async def claim(
        self, run_id: WorkflowRunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedWorkflowRun | None:
        """Take a run that is queued, or whose `wake_at` has come."""
        stored = self._state.workflow_runs.get(run_id)
        if stored is None or not self._is_claimable(stored.run, at):
            return None
        run = self._write(stored, stored.run, stored.run.claimed(at=at), at=at)
        stored.lease_until = at + timedelta(seconds=lease_s)
        lease = WorkflowLease(run_id=run.id, organization_id=run.organization_id, epoch=run.epoch)
        return ClaimedWorkflowRun(lease=lease, run=run, definition=self._definition(run))

    async def renew(
        self, worker_id: WorkerId, leases: tuple[WorkflowLease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[WorkflowRunId]:
        """Extend all leases."""
        held = {lease.run_id: self._held(lease) for lease in leases}
        for stored in held.values():
            if stored is not None:
                stored.lease_until = at + timedelta(seconds=lease_s)
        return frozenset(run_id for run_id, stored in held.items() if stored is None)

    async def commit(
        self,
        lease: WorkflowLease,
        run: WorkflowRun,
        *,
        at: datetime,
        audit: tuple[AuditEvent, ...] = (),
        registered: tuple[RegisteredTool, ...] = (),
    ) -> WorkflowRun:
        """Store the run as it is now."""
        stored = self._held(lease)
        if stored is None:
            raise LeaseLost(lease.run_id)
        after = replace(run, cancel_requested_by=stored.run.cancel_requested_by)
        self._state.record(*audit)
        stored.tools |= {tool.node_id: tool for tool in registered}
        return self._write(stored, stored.run, after, at=at)

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[WorkflowRunId, ...]:
        """Runs to submit again."""
        for stored in self._state.workflow_runs.values():
            lapsed = stored.lease_until is not None and (sole_owner or stored.lease_until <= at)
            if stored.run.status is WorkflowRunStatus.IN_PROGRESS and lapsed:
                stored.run = stored.run.handed_back()
        found = sorted(
            (stored.run for stored in self._state.workflow_runs.values() if self._is_claimable(stored.run, at)),
            key=lambda run: (run.created_at, run.id),
        )
        return tuple(run.id for run in found[:limit])

    def _write(
        self, stored: StoredWorkflowRun, before: WorkflowRun | None, after: WorkflowRun, *, at: datetime
    ) -> WorkflowRun:
        last_seq = 0 if before is None else before.last_seq
        for number, event in enumerate(events_between(before, after, at=at), start=last_seq + 1):
            stored.events.append(WorkflowEvent(seq=number, type=event.type, at=event.at, data=event.data))
            last_seq = number
        nodes = dict(sorted(after.nodes.items()))
        stored.run = replace(after, last_seq=last_seq, nodes=nodes)
        if after.status.is_terminal:
            stored.tools.clear()
        self._wakeups.wake(workflow_events_topic(after.id))
        return stored.run

    def _of(self, organization_id: OrganizationId, run_id: WorkflowRunId) -> StoredWorkflowRun | None:
        stored = self._state.workflow_runs.get(run_id)
        return stored if stored is not None and stored.run.organization_id == organization_id else None

    def _held(self, lease: WorkflowLease) -> StoredWorkflowRun | None:
        stored = self._state.workflow_runs.get(lease.run_id)
        if stored is None or stored.run.status is not WorkflowRunStatus.IN_PROGRESS or stored.run.epoch != lease.epoch:
            return None
        return stored

    def _is_claimable(self, run: WorkflowRun, at: datetime) -> bool:
        if run.status is WorkflowRunStatus.REQUIRES_ACTION:
            is_due = run.wake_at is not None and run.wake_at <= at
            return is_due or any(self._has_moved_on(node) for node in run.nodes.values())
        return run.status is WorkflowRunStatus.QUEUED

    def _has_moved_on(self, node: NodeRun) -> bool:
        if node.waits_for_run is None:
            return False
        stored = self._state.runs.get(node.waits_for_run)
        waits = stored is not None and stored.run.status is RunStatus.REQUIRES_ACTION
        return stored is None or not waits or stored.run.last_seq != node.run_seq

    def _definition(self, run: WorkflowRun) -> WorkflowDefinition:
        versions = self._state.workflows[run.workflow_id]
        return next(workflow.definition for workflow in versions if workflow.version == run.workflow_version)
