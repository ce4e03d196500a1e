"""Workflow runs in SQL: for the API and for the worker that executes one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select, update

from application.runs.new_run import IdempotencyKey
from application.runs.ports import LeaseLost
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from application.webhooks.notices import of_questions
from application.webhooks.ports import WEBHOOKS_TOPIC
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
from domain.identity.impersonation import as_others
from domain.ids import OrganizationId, WorkerId, WorkflowRunId
from domain.runs.run import RunStatus
from domain.tools.wired import RegisteredTool
from domain.workflows.definition_json import definition_from_json
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.leases import expired_by, held_after, renewing
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.columns.starters import is_started_by
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.group_owners import require_group
from infrastructure.persistence.tables import run as agent_run
from infrastructure.persistence.tables import (
    workflow,
    workflow_event,
    workflow_node_run,
    workflow_run,
    workflow_version,
)
from infrastructure.persistence.webhooks.notice_rows import add_notices
from infrastructure.persistence.workflows.run_rows import (
    OUTLINE,
    earlier_run,
    event_of,
    insert_run,
    outline_of,
    run_of,
    run_of_key,
    write_change,
)
from infrastructure.persistence.workflows.tool_store import put_tools

_RUN = workflow_run.c
_this = _RUN.id == bindparam("of_run")
_own = _RUN.organization_id == bindparam("of_organization")
_get = select(workflow_run).where(_this, _own)
_lock = _get.with_for_update()
_lock_any = select(workflow_run).where(_this).with_for_update()
_events = (
    select(workflow_event)
    .where(workflow_event.c.workflow_run_id == bindparam("of_run"), workflow_event.c.seq > bindparam("after_seq"))
    .order_by(workflow_event.c.seq)
    .limit(bindparam("limit"))
)
_in_use = (
    select(workflow.c.team)
    .where(
        workflow.c.id == bindparam("of_workflow"),
        workflow.c.organization_id == bindparam("of_organization"),
        workflow.c.deleted_at.is_(None),
    )
    .with_for_update(read=True)
)
_definition = select(workflow_version.c.name, workflow_version.c.graph, workflow_version.c.team).where(
    workflow_version.c.workflow_id == bindparam("of_workflow"), workflow_version.c.version == bindparam("at_version")
)
_in_progress = _RUN.status == WorkflowRunStatus.IN_PROGRESS.value
_is_due = and_(_RUN.status == WorkflowRunStatus.REQUIRES_ACTION.value, _RUN.wake_at <= bindparam("moment"))
_renew = renewing(workflow_run)
# The agent's run is deleted, no longer waits, or waits for something else.
_has_moved_on = (
    select(workflow_node_run.c.workflow_run_id)
    .outerjoin(agent_run, agent_run.c.id == workflow_node_run.c.waits_for)
    .where(
        workflow_node_run.c.waits_for.is_not(None),
        or_(
            agent_run.c.id.is_(None),
            agent_run.c.status != RunStatus.REQUIRES_ACTION.value,
            agent_run.c.last_seq != workflow_node_run.c.waits_seq,
        ),
    )
)
_this_has_moved_on = _has_moved_on.where(workflow_node_run.c.workflow_run_id == bindparam("of_run")).limit(1)
_moved_on = (
    select(_RUN.id)
    .where(_RUN.status == WorkflowRunStatus.REQUIRES_ACTION.value, _RUN.id.in_(_has_moved_on))
    .limit(bindparam("limit"))
)
_is_lapsed = (_RUN.finished_at.is_(None), _in_progress, _RUN.lease_expires_at <= bindparam("lapsed_at"))
_lapsed = select(_RUN.id).where(*_is_lapsed).limit(1)
_put_back = (
    update(workflow_run)
    .where(*_is_lapsed)
    .values(status=WorkflowRunStatus.QUEUED.value, epoch=_RUN.epoch + 1, worker_id=None, lease_expires_at=None)
)
_claimable = (
    select(_RUN.id)
    .where(_RUN.finished_at.is_(None), or_(_RUN.status == WorkflowRunStatus.QUEUED.value, _is_due))
    .order_by(_RUN.created_at, _RUN.id)
    .limit(bindparam("limit"))
)


def conditions(organization_id: OrganizationId, wanted: WorkflowRunFilter) -> Iterator[ColumnElement[bool]]:
    """All of them must hold. With `coalesce`, SQLite reads the small index of unfinished runs and
    not all runs of the organization."""
    is_open = wanted.is_unfinished or (wanted.status is not None and not wanted.status.is_terminal)
    yield (func.coalesce(_RUN.organization_id, "") if is_open else _RUN.organization_id) == organization_id
    if is_open:
        yield _RUN.finished_at.is_(None)
    if wanted.is_unfinished is False:
        yield _RUN.finished_at.is_not(None)
    if wanted.workflow_id is not None:
        yield _RUN.workflow_id == wanted.workflow_id
    if wanted.status is not None:
        yield _RUN.status == wanted.status.value
    if wanted.requested_by is not None:
        yield is_started_by(_RUN.requested_by, wanted.requested_by, as_others(wanted.requested_by))


class SqlWorkflowRunStore:
    """The `WorkflowRunStore` and `WorkflowJournal` ports."""

    def __init__(self, *, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups

    async def start(
        self, run: WorkflowRun, audit: AuditEvent, *, idempotency: IdempotencyKey | None = None
    ) -> WorkflowRun:
        def unit(connection: Connection) -> WorkflowRun:
            earlier = earlier_run(connection, run, idempotency)
            if earlier is not None:
                return earlier
            wanted = {"of_workflow": run.workflow_id, "of_organization": run.organization_id}
            used = connection.execute(_in_use, wanted).first()
            if used is None:
                raise not_found("workflow", run.workflow_id)
            require_group(connection, run.organization_id, run.team, former=used.team)
            stored = insert_run(connection, run, at=run.created_at, idempotency=idempotency)
            if stored.id == run.id:
                record(connection, audit)
            return stored

        return await self._database.write(unit, scope=run.organization_id, after_commit=self._told)

    async def started_before(
        self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
    ) -> WorkflowRun | None:
        return await self._database.read(
            lambda connection: run_of_key(connection, organization_id, key, at=at), scope=organization_id
        )

    async def get(self, organization_id: OrganizationId, run_id: WorkflowRunId) -> WorkflowRun | None:
        def unit(connection: Connection) -> WorkflowRun | None:
            row = connection.execute(_get, _of(organization_id, run_id)).first()
            return None if row is None else run_of(connection, row)

        return await self._database.read(unit, scope=organization_id)

    async def page(
        self, organization_id: OrganizationId, wanted: WorkflowRunFilter, request: PageRequest
    ) -> Page[WorkflowRun]:
        statement = select(*OUTLINE).where(*conditions(organization_id, wanted))
        return await self._database.read(newest_page(statement, request, _RUN, outline_of), scope=organization_id)

    async def events(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, *, after_seq: int, limit: int
    ) -> tuple[WorkflowEvent, ...]:
        def unit(connection: Connection) -> tuple[WorkflowEvent, ...]:
            if connection.execute(_get, _of(organization_id, run_id)).first() is None:
                return ()
            wanted = {"of_run": run_id, "after_seq": after_seq, "limit": limit}
            return tuple(event_of(row) for row in connection.execute(_events, wanted))

        return await self._database.read(unit, scope=organization_id)

    async def definition(self, organization_id: OrganizationId, run: WorkflowRun) -> WorkflowDefinition:
        return await self._database.read(lambda connection: _definition_of(connection, run), scope=organization_id)

    async def change(
        self, organization_id: OrganizationId, run_id: WorkflowRunId, decide: Decide, *, at: datetime, audit: AuditEvent
    ) -> WorkflowRun | None:
        def unit(connection: Connection) -> WorkflowRun | None:
            row = connection.execute(_lock, _of(organization_id, run_id)).first()
            if row is None:
                return None
            run = run_of(connection, row)
            changed = decide(run)
            if changed is run:
                return run
            record(connection, audit)
            return write_change(connection, run, changed, at=at)

        def told(run: WorkflowRun | None) -> None:
            self._told(run)
            self._wakeups.wake(workflow_control_topic(run_id))

        return await self._database.write(unit, scope=organization_id, after_commit=told)

    # --- the worker's side ---

    async def claim(
        self, run_id: WorkflowRunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedWorkflowRun | None:
        def unit(connection: Connection) -> ClaimedWorkflowRun | None:
            row = connection.execute(_lock_any, {"of_run": run_id}).first()
            if row is None:
                return None
            run = run_of(connection, row)
            if run.status is not WorkflowRunStatus.QUEUED and not _goes_on(connection, run, at):
                return None
            until = at + timedelta(seconds=lease_s)
            stored = write_change(
                connection, run, run.claimed(at=at), at=at, worker_id=worker_id, lease_expires_at=until
            )
            lease = WorkflowLease(run_id=run.id, organization_id=run.organization_id, epoch=stored.epoch)
            return ClaimedWorkflowRun(lease=lease, run=stored, definition=_definition_of(connection, run))

        def told(claimed: ClaimedWorkflowRun | None) -> None:
            self._told(None if claimed is None else claimed.run)

        return await self._database.write(unit, scope=SYSTEM, after_commit=told)

    async def renew(
        self, worker_id: WorkerId, leases: tuple[WorkflowLease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[WorkflowRunId]:
        if not leases:
            return frozenset()
        run_ids, until = [lease.run_id for lease in leases], at + timedelta(seconds=lease_s)
        held = await self._database.write(
            lambda connection: held_after(connection, _renew, worker_id, run_ids, until=until), scope=SYSTEM
        )
        return frozenset(lease.run_id for lease in leases if (lease.run_id, lease.epoch) not in held)

    async def commit(
        self,
        lease: WorkflowLease,
        run: WorkflowRun,
        *,
        at: datetime,
        audit: tuple[AuditEvent, ...] = (),
        registered: tuple[RegisteredTool, ...] = (),
    ) -> WorkflowRun:
        def unit(connection: Connection) -> WorkflowRun:
            row = connection.execute(_lock, _of(lease.organization_id, lease.run_id)).first()
            if row is None or row.epoch != lease.epoch or row.status != WorkflowRunStatus.IN_PROGRESS.value:
                raise LeaseLost(lease.run_id)
            before = run_of(connection, row)
            after = replace(run, cancel_requested_by=before.cancel_requested_by)
            left = after.status is not WorkflowRunStatus.IN_PROGRESS
            ended: dict[str, object] = {"worker_id": None, "lease_expires_at": None} if left else {}
            if audit:
                record(connection, *audit)
            put_tools(connection, registered)
            add_notices(connection, of_questions(before, after, at=at))
            return write_change(connection, before, after, at=at, **ended)

        return await self._database.write(unit, scope=lease.organization_id, after_commit=self._told)

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[WorkflowRunId, ...]:
        lapsed = {"lapsed_at": expired_by(at, sole_owner=sole_owner)}
        # Read first: usually there is nothing to write.
        if await self._database.read(lambda connection: connection.execute(_lapsed, lapsed).first(), scope=SYSTEM):
            await self._database.write(lambda connection: connection.execute(_put_back, lapsed).rowcount, scope=SYSTEM)

        def unit(connection: Connection) -> tuple[WorkflowRunId, ...]:
            found = [
                *connection.execute(_claimable, {"moment": at, "limit": limit}).scalars(),
                *connection.execute(_moved_on, {"limit": limit}).scalars(),
            ]
            return tuple(WorkflowRunId(run_id) for run_id in dict.fromkeys(found))

        return await self._database.read(unit, scope=SYSTEM)

    def _told(self, run: WorkflowRun | None) -> None:
        if run is not None:
            self._wakeups.wake(workflow_events_topic(run.id))
            if run.status is WorkflowRunStatus.REQUIRES_ACTION:
                self._wakeups.wake(WEBHOOKS_TOPIC)


def _of(organization_id: OrganizationId, run_id: WorkflowRunId) -> dict[str, str]:
    return {"of_organization": organization_id, "of_run": run_id}


def _goes_on(connection: Connection, waiting: WorkflowRun, at: datetime) -> bool:
    """Whether a waiting run can continue: its time has come, or an agent's run has continued."""
    if waiting.status is not WorkflowRunStatus.REQUIRES_ACTION:
        return False
    if waiting.wake_at is not None and waiting.wake_at <= at:
        return True
    return connection.execute(_this_has_moved_on, {"of_run": waiting.id}).first() is not None


def _definition_of(connection: Connection, run: WorkflowRun) -> WorkflowDefinition:
    wanted = {"of_workflow": run.workflow_id, "at_version": run.workflow_version}
    row = connection.execute(_definition, wanted).one()
    return definition_from_json(row.name, row.graph, team=row.team)
