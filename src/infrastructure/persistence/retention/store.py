"""Removes expired data from SQL in steps: each is a transaction of bounded size."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, func, or_, select, tuple_, update

from application.retention.ports import IdleThreads, Removed, ThreadPlace
from domain.ids import OrganizationId, ThreadId
from domain.webhooks.delivery import NOTICES
from infrastructure.persistence.columns.column_types import Moment
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import (
    gateway_session,
    idempotency_key,
    message,
    oauth_authorization,
    run,
    run_event,
    source,
    thread,
    webhook_delivery,
    workflow,
    workflow_run,
)
from infrastructure.persistence.threads.queue import is_unfinished, lock_thread
from infrastructure.persistence.threads.source_removal import hide_sources, remove_pieces_of_thread

EVENTS_IN_A_STEP = 1_000
MESSAGES_IN_A_STEP = 200

_before = bindparam("before", type_=Moment())
_last_message = (
    select(message.c.created_at)
    .where(message.c.thread_id == thread.c.id)
    .order_by(message.c.position.desc())
    .limit(1)
    .scalar_subquery()
)


def is_idle_since(before: ColumnElement[datetime]) -> ColumnElement[bool]:
    """Whether a thread was created before then and has been idle since."""
    return and_(
        thread.c.created_at < before,
        thread.c.quarantined_at.is_(None),
        func.coalesce(_last_message, thread.c.created_at) < before,
        ~exists().where(
            run.c.thread_id == thread.c.id,
            or_(is_unfinished, run.c.created_at >= before, run.c.finished_at >= before),
        ),
        ~exists().where(
            gateway_session.c.thread_id == thread.c.id,
            func.coalesce(gateway_session.c.revoked_at, gateway_session.c.expires_at) >= before,
        ),
        ~exists().where(source.c.thread_id == thread.c.id, source.c.created_at >= before),
    )


_is_idle = is_idle_since(_before)
_old = (
    select(thread.c.id, thread.c.created_at, _is_idle.label("is_idle"))
    .where(thread.c.organization_id == bindparam("of_organization"), thread.c.created_at < _before)
    .order_by(thread.c.created_at, thread.c.id)
    .limit(bindparam("at_most"))
)
_old_behind = _old.where(
    tuple_(thread.c.created_at, thread.c.id)
    > tuple_(bindparam("after_at", type_=Moment()), bindparam("after_id", type_=thread.c.id.type))
)
_this_is_idle = select(thread.c.id).where(thread.c.id == bindparam("of_thread"), _is_idle)
_remove_sources = delete(source).where(source.c.thread_id == bindparam("of_thread"))
_oldest_run = (
    select(run.c.id).where(run.c.thread_id == bindparam("of_thread")).order_by(run.c.created_at, run.c.id).limit(1)
)
_first_seq = select(func.min(run_event.c.seq)).where(run_event.c.run_id == bindparam("of_run")).scalar_subquery()
_remove_events = delete(run_event).where(
    run_event.c.run_id == bindparam("of_run"), run_event.c.seq < _first_seq + EVENTS_IN_A_STEP
)
_remove_messages_of_run = delete(message).where(
    message.c.run_id == bindparam("of_run"), message.c.thread_id == bindparam("of_thread")
)
_remove_run = delete(run).where(run.c.id == bindparam("of_run"))
_first_position = (
    select(func.min(message.c.position)).where(message.c.thread_id == bindparam("of_thread")).scalar_subquery()
)
_remove_messages = delete(message).where(
    message.c.thread_id == bindparam("of_thread"), message.c.position < _first_position + MESSAGES_IN_A_STEP
)
_has_messages = select(message.c.position).where(message.c.thread_id == bindparam("of_thread")).limit(1)
_remove_thread = delete(thread).where(thread.c.id == bindparam("of_thread"))

_of_organization = idempotency_key.c.organization_id == bindparam("of_organization")
_forget_keys = delete(idempotency_key).where(
    _of_organization,
    idempotency_key.c.key.in_(
        select(idempotency_key.c.key)
        .where(_of_organization, idempotency_key.c.created_at <= _before)
        .order_by(idempotency_key.c.created_at)
        .limit(bindparam("at_most"))
    ),
)
_run_keys = and_(
    workflow_run.c.organization_id == bindparam("of_organization"), workflow_run.c.idempotency_key.is_not(None)
)
_forget_workflow_keys = (
    update(workflow_run)
    .where(
        _run_keys,
        workflow_run.c.id.in_(
            select(workflow_run.c.id)
            .where(_run_keys, workflow_run.c.created_at <= _before)
            .order_by(workflow_run.c.created_at)
            .limit(bindparam("at_most"))
        ),
    )
    .values(idempotency_key=None, body_digest=None)
)
# A run that ended before was created before, which the index covers.
_old_workflow_runs = (
    select(workflow_run.c.id)
    .where(
        workflow_run.c.organization_id == bindparam("of_organization"),
        workflow_run.c.created_at < _before,
        workflow_run.c.finished_at < _before,
    )
    .order_by(workflow_run.c.created_at, workflow_run.c.id)
    .limit(bindparam("at_most"))
)
_remove_workflow_runs = delete(workflow_run).where(workflow_run.c.id.in_(_old_workflow_runs))
_remove_unused_workflows = delete(workflow).where(
    workflow.c.organization_id == bindparam("of_organization"),
    workflow.c.deleted_at < _before,
    ~exists().where(workflow_run.c.workflow_id == workflow.c.id),
)
_remove_notices = delete(webhook_delivery).where(
    webhook_delivery.c.id.in_(
        select(webhook_delivery.c.id)
        .where(
            webhook_delivery.c.organization_id == bindparam("of_organization"),
            # As literals: then the planner finds the index of notices.
            webhook_delivery.c.event.in_(
                bindparam("notices", [event.value for event in NOTICES], expanding=True, literal_execute=True)
            ),
            webhook_delivery.c.created_at < _before,
            webhook_delivery.c.run_id.is_(None),
            webhook_delivery.c.workflow_run_id.is_(None),
            webhook_delivery.c.server_id.is_(None),
        )
        .order_by(webhook_delivery.c.created_at, webhook_delivery.c.id)
        .limit(bindparam("at_most"))
    )
)
_forget_authorizations = delete(oauth_authorization).where(
    oauth_authorization.c.state_hash.in_(
        select(oauth_authorization.c.state_hash)
        .where(oauth_authorization.c.expires_at < _before)
        .order_by(oauth_authorization.c.expires_at)
        .limit(bindparam("at_most"))
    )
)


class SqlRetentionStore:
    """The `RetentionStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def idle_threads(
        self, organization_id: OrganizationId, before: datetime, *, after: ThreadPlace | None, limit: int
    ) -> IdleThreads:
        wanted: dict[str, object] = {"of_organization": organization_id, "before": before, "at_most": limit}
        if after is not None:
            wanted |= {"after_at": after.created_at, "after_id": after.thread_id}
        statement = _old if after is None else _old_behind

        def unit(connection: Connection) -> IdleThreads:
            rows = connection.execute(statement, wanted).all()
            last = rows[-1] if len(rows) == limit else None
            return IdleThreads(
                found=tuple(ThreadId(row.id) for row in rows if row.is_idle),
                next=None if last is None else ThreadPlace(created_at=last.created_at, thread_id=ThreadId(last.id)),
            )

        return await self._database.read(unit, scope=organization_id)

    async def remove(self, organization_id: OrganizationId, thread_id: ThreadId, before: datetime) -> Removed:

        def is_idle(connection: Connection) -> bool:
            wanted = {"of_thread": thread_id, "before": before}
            return (
                lock_thread(connection, organization_id, thread_id)
                and connection.execute(_this_is_idle, wanted).first() is not None
            )

        def unit(connection: Connection) -> Removed | None:
            """None if the text of its sources must be removed first, in many steps."""
            if not is_idle(connection):
                return Removed()
            if hide_sources(connection, organization_id, thread_id):
                return None
            return _remove_part(connection, thread_id)

        def without_sources(connection: Connection) -> Removed:
            if not is_idle(connection):
                return Removed()
            return Removed(sources=connection.execute(_remove_sources, {"of_thread": thread_id}).rowcount, more=True)

        removed = await self._database.write(unit, scope=organization_id)
        if removed is None:
            await remove_pieces_of_thread(self._database, organization_id, thread_id)
            removed = await self._database.write(without_sources, scope=organization_id)
        return removed

    async def remove_workflow_runs(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        wanted = {"of_organization": organization_id, "before": before, "at_most": limit}

        def unit(connection: Connection) -> int:
            removed = connection.execute(_remove_workflow_runs, wanted).rowcount
            if removed < limit:
                connection.execute(_remove_unused_workflows, {"of_organization": organization_id, "before": before})
            return removed

        return await self._database.write(unit, scope=organization_id)

    async def remove_notices(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        wanted = {"of_organization": organization_id, "before": before, "at_most": limit}
        return await self._database.write(
            lambda connection: connection.execute(_remove_notices, wanted).rowcount, scope=organization_id
        )

    async def forget_idempotency_keys(self, organization_id: OrganizationId, before: datetime, *, limit: int) -> int:
        wanted = {"of_organization": organization_id, "before": before, "at_most": limit}

        def unit(connection: Connection) -> int:
            forgotten = connection.execute(_forget_keys, wanted).rowcount
            left = {**wanted, "at_most": limit - forgotten}
            return forgotten + connection.execute(_forget_workflow_keys, left).rowcount

        return await self._database.write(unit, scope=organization_id)

    async def forget_authorizations(self, before: datetime, *, limit: int) -> int:
        wanted = {"before": before, "at_most": limit}
        return await self._database.write(
            lambda connection: connection.execute(_forget_authorizations, wanted).rowcount, scope=SYSTEM
        )


def _remove_part(connection: Connection, thread_id: ThreadId) -> Removed:
    """The next part: events of the oldest run, or the rest of it, or messages without a run, or the
    thread."""
    of_thread = {"of_thread": thread_id}
    oldest = connection.execute(_oldest_run, of_thread).scalar_one_or_none()
    if oldest is not None:
        of_run = {"of_run": oldest}
        if connection.execute(_remove_events, of_run).rowcount == EVENTS_IN_A_STEP:
            return Removed(more=True)
        messages = connection.execute(_remove_messages_of_run, of_run | of_thread).rowcount
        connection.execute(_remove_run, of_run)
        return Removed(runs=1, messages=messages, more=True)
    messages = connection.execute(_remove_messages, of_thread).rowcount
    if connection.execute(_has_messages, of_thread).first() is not None:
        return Removed(messages=messages, more=True)
    connection.execute(_remove_thread, of_thread)
    return Removed(threads=1, messages=messages)
