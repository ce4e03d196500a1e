"""Changes of runs without a worker: loading the facts of a decision, and storing the decision."""

from dataclasses import replace

from sqlalchemy import Connection, bindparam, select, update

from application.runs.ports import ChangedRun
from domain.ids import OrganizationId, RunId
from domain.runs.change import Decide, RunChange, RunFacts
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.starting import ThreadFacts
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.runs.ledger_rows import open_calls
from infrastructure.persistence.runs.rows import run_of, select_run
from infrastructure.persistence.runs.steps import change_run
from infrastructure.persistence.tables import run
from infrastructure.persistence.threads.queue import (
    is_unfinished,
    lock_thread_of,
    quarantined_by,
    queue_order,
    unfinished_runs,
)

_get = Prepared(
    select_run.where(run.c.organization_id == bindparam("organization_id"), run.c.id == bindparam("run_id"))
)
_unfinished = select_run.where(run.c.thread_id == bindparam("thread_id"), is_unfinished).order_by(*queue_order)
_newest = (
    select(run.c.id)
    .where(run.c.thread_id == bindparam("thread_id"))
    .order_by(run.c.created_at.desc(), run.c.id.desc())
    .limit(1)
)
_of_run = run.c.id == bindparam("run_id")
_request_stop = update(run).where(_of_run).values(cancel_requested_by=bindparam("actor"))
_roll_back = update(run).where(_of_run).values(rolled_back=True)


def load_run(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> Run | None:
    found = _get.ask(connection, {"organization_id": organization_id, "run_id": run_id}).typed()
    return run_of(found[0]) if found else None


def change_one(
    connection: Connection, organization_id: OrganizationId, run_id: RunId, decide: Decide
) -> tuple[ChangedRun | None, bool]:
    """The run after the decision, or None without the run; and whether anything was stored."""
    lock_thread_of(connection, run_id)
    stored = load_run(connection, organization_id, run_id)
    if stored is None:
        return None, False
    waits = stored.status is RunStatus.REQUIRES_ACTION
    queued_behind = waits and len(unfinished_runs(connection, stored.thread_id)) > 1
    change = decide(_facts(connection, stored, queued_behind=queued_behind))
    return (ChangedRun(run=stored), False) if change is None else (store_change(connection, change), True)


def thread_facts(connection: Connection, new: Run, strategy: MultitaskStrategy) -> ThreadFacts:
    """The locked thread of a new run, as a start with this strategy needs it."""
    thread_id = new.thread_id
    found = connection.execute(_unfinished.limit(strategy.looks_at), {"thread_id": thread_id}).all()
    newest = None if new.retry_of is None else connection.scalar(_newest, {"thread_id": thread_id})
    return ThreadFacts(
        quarantined_by=quarantined_by(connection, thread_id),
        unfinished=tuple(_facts(connection, run_of(row), queued_behind=len(found) > 1) for row in found),
        newest=None if newest is None else RunId(newest),
    )


def store_change(connection: Connection, change: RunChange) -> ChangedRun:
    """Store a change under the thread's lock."""
    run_id = change.run.id
    if change.rolls_back:
        connection.execute(_roll_back, {"run_id": run_id})
    if change.step is None:
        connection.execute(_request_stop, {"run_id": run_id, "actor": change.stop_requested_by})
        return ChangedRun(run=change.changed_run)
    outcome = change_run(connection, change.step, seen=change.run.status)
    return ChangedRun(run=replace(change.changed_run, last_seq=outcome.last_seq), promoted=outcome.promoted)


def _facts(connection: Connection, stored: Run, *, queued_behind: bool) -> RunFacts:
    idle = stored.status in (RunStatus.QUEUED, RunStatus.REQUIRES_ACTION)
    calls = open_calls(connection, stored.id) if idle and stored.attempt else ()
    return RunFacts(run=stored, open_calls=calls, queued_behind=queued_behind)
