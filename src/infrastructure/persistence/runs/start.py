"""The transaction that starts a run: idempotency, the thread's unfinished runs, the run and its first event."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from application.runs.ports import KEY_LIFETIME, IdempotencyKey, NewRun, StartedRun
from domain.errors import Violation, invalid, not_found
from domain.ids import OrganizationId, RunId
from domain.runs.closing import displayed_step, lacks_display_only, waits_for_display_only
from domain.runs.resuming import going_on_step
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.run_events import run_queued
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.prepared import Prepared, pipelined, prepared_insert
from infrastructure.persistence.runs.event_rows import add_events
from infrastructure.persistence.runs.ledger_rows import open_calls
from infrastructure.persistence.runs.rows import NEW_RUN_COLUMNS, new_run_row, run_of, run_request_row, select_run
from infrastructure.persistence.runs.steps import change_run
from infrastructure.persistence.runs.stopping import stop_run
from infrastructure.persistence.schedules.rows import begin_run
from infrastructure.persistence.tables import idempotency_key, run, run_request
from infrastructure.persistence.threads.queue import (
    lock_thread,
    next_run,
    refuse_if_quarantined,
    thread_busy,
    unfinished_runs,
)
from infrastructure.persistence.threads.rows import add_thread

_expire_keys = delete(idempotency_key).where(
    idempotency_key.c.organization_id == bindparam("organization_id"),
    idempotency_key.c.created_at <= bindparam("expired"),
)
# Waits for another transaction that is using the same key, then stores nothing.
_take_key = (
    upsert(idempotency_key)
    .on_conflict_do_nothing(index_elements=["organization_id", "key"])
    .returning(idempotency_key.c.run_id)
)
_key = select(idempotency_key.c.body_digest, idempotency_key.c.run_id, idempotency_key.c.created_at).where(
    idempotency_key.c.organization_id == bindparam("organization_id"), idempotency_key.c.key == bindparam("key")
)
_get = select_run.where(run.c.id == bindparam("run_id"))
_roll_back = update(run).where(run.c.id == bindparam("run_id")).values(rolled_back=True)
_insert_run = Prepared(run.insert().inline(), columns=NEW_RUN_COLUMNS)
_insert_request = prepared_insert(run_request)


def starts_plainly(new: NewRun) -> bool:
    """Whether it begins a thread of its own, and there is nothing to look at before."""
    return new.new_thread is not None and new.idempotency is None and new.firing is None


def start_run(connection: Connection, new: NewRun, *, webhook_url: bytes | None) -> tuple[StartedRun, tuple[Run, ...]]:
    """What was started, and every run that was written to, as it stands then. Raises as `RunStore.start` says. The URL of the
    webhook comes encrypted."""
    earlier = _earlier_run(connection, new)
    if earlier is not None:
        return StartedRun(run=earlier, created=False), ()
    if new.firing is not None:
        begin_run(connection, new.firing, new.run)
    started = new.run
    touched: list[Run] = []
    if new.new_thread is None:
        if not lock_thread(connection, started.organization_id, started.thread_id):
            raise not_found("thread", started.thread_id)
        refuse_if_quarantined(connection, started.thread_id)
        touched = _make_room(connection, new)
    queued = run_queued(started, at=started.created_at)
    with pipelined(connection):
        if new.new_thread is not None:
            add_thread(connection, new.new_thread)
        _insert_run.run(connection, new_run_row(started, last_seq=1))
        _insert_request.run(connection, run_request_row(started, webhook_url=webhook_url))
        add_events(connection, started.organization_id, started.id, (queued,), last_seq=1)
    started = replace(started, last_seq=1)
    went_on = (RunStatus.COMPLETED, RunStatus.QUEUED)
    interrupted = tuple(changed.id for changed in touched if changed.status not in went_on)
    first = next_run(connection, started.thread_id) if touched else None
    promoted = None if first == started.id else first
    ended = tuple(changed for changed in touched if changed.status.is_terminal)
    return (
        StartedRun(run=started, created=True, interrupted=interrupted, ended=ended, promoted=promoted),
        (*touched, started),
    )


def _earlier_run(connection: Connection, new: NewRun) -> Run | None:
    """The run that the idempotency key named before; None takes the key for the new run."""
    if new.idempotency is None:
        return None
    organization_id, at = new.run.organization_id, new.run.created_at
    connection.execute(_expire_keys, {"organization_id": organization_id, "expired": at - KEY_LIFETIME})
    taken = connection.execute(
        _take_key,
        {
            "organization_id": organization_id,
            "key": new.idempotency.key,
            "body_digest": new.idempotency.body_digest,
            "run_id": new.run.id,
            "created_at": at,
        },
    )
    if taken.first() is not None:
        return None
    return run_of_key(connection, organization_id, new.idempotency, at=at)


def run_of_key(
    connection: Connection, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
) -> Run | None:
    """The run that the key named within its lifetime; takes nothing. Raises INVALID `idempotency_key_reused`."""
    used = connection.execute(_key, {"organization_id": organization_id, "key": key.key}).first()
    if used is None or used.created_at <= at - KEY_LIFETIME:
        return None
    if used.body_digest != key.body_digest:
        raise invalid(
            "idempotency_key_reused",
            "The idempotency key was used for another request.",
            Violation(path="Idempotency-Key", message="was used with another body"),
        )
    return _load(connection, RunId(used.run_id))


def _make_room(connection: Connection, new: NewRun) -> list[Run]:
    """Settle the run that waits for display only, or have it go on if it has calls to make first, then stop the others if
    the strategy says so. Returns all changed runs."""
    at = new.run.created_at
    changed: list[Run] = []
    remaining = []
    for row in unfinished_runs(connection, new.run.thread_id):
        calls = open_calls(connection, RunId(row.id)) if row.status == RunStatus.REQUIRES_ACTION.value else ()
        if row.status == RunStatus.REQUIRES_ACTION.value and waits_for_display_only(calls):
            step = displayed_step(_load(connection, RunId(row.id)), calls, at=at)
            outcome = change_run(connection, step, seen=RunStatus.REQUIRES_ACTION)
            changed.append(replace(step.run, last_seq=outcome.last_seq))
        elif calls and new.strategy is MultitaskStrategy.ENQUEUE and lacks_display_only(calls):
            step = going_on_step(_load(connection, RunId(row.id)), at=at)
            outcome = change_run(connection, step, seen=RunStatus.REQUIRES_ACTION)
            changed.append(replace(step.run, last_seq=outcome.last_seq))
        else:
            remaining.append(row)
    if remaining and new.strategy is MultitaskStrategy.REJECT:
        raise thread_busy(remaining[0])
    if new.strategy not in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK):
        return changed
    for row in remaining:
        if new.strategy is MultitaskStrategy.ROLLBACK:
            connection.execute(_roll_back, {"run_id": row.id})
        stopped = stop_run(connection, _load(connection, RunId(row.id)), actor=new.run.requested_by or "system", at=at)
        changed.append(stopped.run)
    return changed


def _load(connection: Connection, run_id: RunId) -> Run:
    return run_of(connection.execute(_get, {"run_id": run_id}).one())
