"""The transaction that starts a run: idempotency, the thread's unfinished runs, the run and its
first event."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from application.runs.idempotency import UsedKey, named_run
from application.runs.new_run import KEY_LIFETIME, IdempotencyKey, NewRun, StartedRun
from domain.copies import with_changes
from domain.errors import not_found
from domain.ids import OrganizationId, RunId
from domain.runs.run import MultitaskStrategy, Run
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.prepared import Prepared, pipelined, prepared_insert
from infrastructure.persistence.runs.admission import admit, require_places
from infrastructure.persistence.runs.changes import load_run, store_change, thread_facts
from infrastructure.persistence.runs.event_rows import add_events
from infrastructure.persistence.runs.rows import NEW_RUN_COLUMNS, new_run_row, run_request_row
from infrastructure.persistence.schedules.rows import begin_run
from infrastructure.persistence.tables import idempotency_key, run, run_request, thread
from infrastructure.persistence.threads.message_rows import add_messages
from infrastructure.persistence.threads.queue import locked_team, next_run
from infrastructure.persistence.threads.rows import add_thread

_expire_keys = delete(idempotency_key).where(
    idempotency_key.c.organization_id == bindparam("organization_id"),
    idempotency_key.c.created_at <= bindparam("expired"),
)
# Waits for another transaction with the same key, then stores nothing.
_take_key = (
    upsert(idempotency_key)
    .on_conflict_do_nothing(index_elements=["organization_id", "key"])
    .returning(idempotency_key.c.run_id)
)
_key = select(idempotency_key.c.body_digest, idempotency_key.c.run_id, idempotency_key.c.created_at).where(
    idempotency_key.c.organization_id == bindparam("organization_id"), idempotency_key.c.key == bindparam("key")
)
_webhook_url = select(run_request.c.webhook_url).where(run_request.c.run_id == bindparam("run_id"))
_give_thread = update(thread).where(thread.c.id == bindparam("of_thread")).values(team=bindparam("owner"))
_insert_run = Prepared(run.insert().inline(), columns=NEW_RUN_COLUMNS)
_insert_request = prepared_insert(run_request)


def starts_plainly(new: NewRun) -> bool:
    """Whether the run starts a new thread without an idempotency key and a bound of the queue, so
    that nothing is read before."""
    free = new.idempotency is None and new.firing is None and not new.admission.is_bounded
    return new.new_thread is not None and free


def may_be_refused_unstored(new: NewRun) -> bool:
    """Whether a queue that is full at present refuses the run, whatever its start changes."""
    keeps_others = new.new_thread is not None or new.strategy is MultitaskStrategy.ENQUEUE
    return new.admission.is_bounded and new.firing is None and keeps_others


def refuse_unstored(connection: Connection, new: NewRun) -> None:
    """Refuse a run for which there is no place, by reading alone. Raises LIMIT `queue_full`, and as
    `run_of_key`."""
    key, run_ = new.idempotency, new.run
    if key is None or run_of_key(connection, run_.organization_id, key, at=run_.created_at) is None:
        require_places(connection, new)


def start_run(connection: Connection, new: NewRun, *, webhook_url: bytes | None) -> tuple[StartedRun, tuple[Run, ...]]:
    """The started run, and all changed runs in their new state. Raises as `RunStore.start`.
    `webhook_url` is encrypted; a retry gets that of the failed run."""
    earlier = _earlier_run(connection, new)
    if earlier is not None:
        return StartedRun(run=earlier, created=False), ()
    if new.firing is not None:
        begin_run(connection, new.firing, new.run)
    changed: tuple[Run, ...] = ()
    thread_id = new.run.thread_id
    if new.new_thread is None:
        locked = locked_team(connection, new.run.organization_id, thread_id)
        if locked is None:
            raise not_found("thread", thread_id)
        new = new.on_thread_of(locked.name)
        if new.run.team != locked.name:
            connection.execute(_give_thread, {"of_thread": thread_id, "owner": new.run.team})
        changes = new.decide(thread_facts(connection, new.run, new.strategy))
        changed = tuple(store_change(connection, change).run for change in changes)
        if new.run.retry_of is not None:
            webhook_url = connection.scalar(_webhook_url, {"run_id": new.run.retry_of})
    admit(connection, new)
    with pipelined(connection):
        if new.new_thread is not None:
            add_thread(connection, new.new_thread)
            add_messages(connection, new.run.organization_id, new.history, {})
        _insert_run.run(connection, new_run_row(new.run, last_seq=1))
        _insert_request.run(connection, run_request_row(new.run, webhook_url=webhook_url))
        add_events(connection, new.run.organization_id, new.run.id, (new.event,), last_seq=1)
    started = with_changes(new.run, last_seq=1)
    first = next_run(connection, thread_id) if changed else None
    return StartedRun.after(started, changed, first=first), (*changed, started)


def _earlier_run(connection: Connection, new: NewRun) -> Run | None:
    """The run that the idempotency key names; None claims the key for the new run."""
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
    """The run that the key names, without claiming it. Raises INVALID `idempotency_key_reused`."""
    row = connection.execute(_key, {"organization_id": organization_id, "key": key.key}).first()
    if row is None:
        return None
    used = UsedKey(body_digest=row.body_digest, run_id=RunId(row.run_id), used_at=row.created_at)
    run_id = named_run(key, used, at=at)
    return None if run_id is None else load_run(connection, organization_id, run_id)
