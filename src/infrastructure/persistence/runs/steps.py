"""Stores a step of a run: first the run's row, which gives the event numbers, then the rest of the
step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Update, bindparam, select, update

from application.runs.ports import LeaseLost, StepOutcome, events_topic, status_topic
from application.system.wakeups import Wakeups
from application.webhooks.notices import of_pending_calls, of_quarantine
from application.webhooks.ports import WEBHOOKS_TOPIC
from application.workflows.ports import WORKFLOWS_TOPIC, may_let_workflow_go_on
from domain.ids import RunId
from domain.runs.closing import step_instead_of_waiting
from domain.runs.events import NewEvent
from domain.runs.lease import Lease
from domain.runs.run import Run, RunStatus
from domain.runs.step import Step
from domain.threads.thread import Quarantine
from infrastructure.persistence.approvals.rows import add_approvals, end_approvals
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.engine.prepared import Prepared, Rows, pipelined
from infrastructure.persistence.engine.staged import Stages, completed
from infrastructure.persistence.runs.admission import NO_BOUNDS, RunningBounds, has_place, lock_running
from infrastructure.persistence.runs.event_rows import add_events
from infrastructure.persistence.runs.ledger_rows import add_calls, change_calls, open_calls, settle_calls
from infrastructure.persistence.runs.rows import progress_row, state_row
from infrastructure.persistence.tables import message, run, run_request, thread
from infrastructure.persistence.threads.item_columns import NO_ITEMS, SealedItems
from infrastructure.persistence.threads.message_rows import add_messages
from infrastructure.persistence.threads.queue import ask_next_run, lock_thread, unfinished_runs
from infrastructure.persistence.usage.rows import add_spending
from infrastructure.persistence.webhooks.notice_rows import add_notices
from infrastructure.persistence.webhooks.rows import PushReceivers, add_announcements, ask_push_receivers

_state: dict[str, BindParameter[Any]] = {
    name: bindparam(f"new_{name}")
    for name in (
        "agent_version",
        "status",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "usage_estimated",
        "cost_nano_usd",
        "turns",
        "tool_calls",
        "active_s",
        "pending",
        "output",
        "output_json",
        "error_code",
        "error_detail",
        "provider_error",
        "incomplete_reason",
        "finished_at",
    )
}
_counted = run.c.last_seq + bindparam("event_count")
_held = (
    run.c.id == bindparam("run_id"),
    run.c.epoch == bindparam("lease_epoch"),
    run.c.status == RunStatus.IN_PROGRESS.value,
)
_without_overview = (
    select(run_request.c.overview.is_(None))
    .where(run_request.c.run_id == bindparam("run_id", type_=run.c.id.type))
    .scalar_subquery()
    .label("without_overview")
)


class _Advanced(NamedTuple):
    """Values returned by a change of the row; flags in the driver's form."""

    last_seq: int
    rolled_back: bool
    cancel_requested_by: str | None
    has_push_configs: bool
    without_overview: bool


def _advancing(statement: Update) -> Prepared:
    return Prepared(
        statement.returning(
            run.c.last_seq, run.c.rolled_back, run.c.cancel_requested_by, run.c.has_push_configs, _without_overview
        )
    )


def _advanced(found: Rows) -> _Advanced | None:
    row = found.first()
    return None if row is None else _Advanced(*row)


# The condition on the epoch is the fence: it stops all writes of a former worker.
_advance = _advancing(update(run).where(*_held).values(last_seq=_counted, lapses=0, **_state))
_progress = (
    "agent_version",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "usage_estimated",
    "cost_nano_usd",
    "turns",
    "tool_calls",
    "active_s",
)
"""The columns of `progress_row`."""
_go_on = _advancing(
    update(run).where(*_held).values(last_seq=_counted, lapses=0, **{name: _state[name] for name in _progress})
)
_count_events = Prepared(
    update(run).where(*_held).values(last_seq=_counted).returning(run.c.last_seq, run.c.organization_id)
)
# Without a worker; the caller holds the thread's lock and has read the status.
_change = _advancing(
    update(run)
    .where(run.c.id == bindparam("run_id"), run.c.status == bindparam("seen_status"))
    .values(last_seq=_counted, **_state)
)
_claiming = (
    update(run)
    .where(
        run.c.id == bindparam("run_id"),
        run.c.status == RunStatus.QUEUED.value,
        run.c.epoch == bindparam("new_epoch") - 1,
    )
    .values(
        last_seq=_counted,
        epoch=bindparam("new_epoch"),
        attempt=bindparam("new_attempt"),
        started_at=bindparam("new_started_at"),
        worker_id=bindparam("new_worker_id"),
        lease_expires_at=bindparam("new_lease_expires_at"),
        **_state,
    )
)
_claim, _claim_with_place = _advancing(_claiming), _advancing(_claiming.where(has_place))
_set_overview = Prepared(
    update(run_request).where(run_request.c.run_id == bindparam("of_run")).values(overview=bindparam("new_overview"))
)
_quarantine = (
    update(thread)
    .where(thread.c.id == bindparam("of_thread"), thread.c.quarantined_at.is_(None))
    .values(quarantined_at=bindparam("since"), quarantined_by=bindparam("by"), quarantined_for=bindparam("token_id"))
)
_supersede = Prepared(
    update(message).where(message.c.run_id == bindparam("of_run")).values(superseded=True, **NO_ITEMS)
)

_NO_REPLY: SealedItems = {}
"""Steps without a worker store no reply of a model."""


def is_plain(step: Step) -> bool:
    """Whether the step is stored without further reads: it neither suspends nor halts the run."""
    return (
        (step.run.status is RunStatus.IN_PROGRESS or step.run.status.is_terminal)
        and not (step.approvals or step.outcomes)
        and step.quarantine is None
    )


def commit_step(
    connection: Connection, lease: Lease, step: Step, items: SealedItems
) -> Stages[tuple[StepOutcome, Run]]:
    """Store a worker's step; `items` are those of its messages. Returns the outcome and the new
    run. Raises LeaseLost, or ValueError for settled calls that do not fit."""
    if step.quarantine is not None:
        lock_thread(
            connection, lease.organization_id, lease.thread_id
        )  # before the run, in the order of all transactions
    advance, changed = _advance, state_row
    if step.run.status is RunStatus.IN_PROGRESS:
        advance, changed = _go_on, progress_row
    advanced = advance.ask(connection, {**_parameters(step, changed(step.run)), "lease_epoch": lease.epoch})
    yield
    row = _advanced(advanced)
    if row is None:
        raise LeaseLost(lease.run_id)
    outcome = yield from _store_rest(connection, step, row, items)
    if step.run.status is RunStatus.REQUIRES_ACTION:
        ending = step_instead_of_waiting(
            step.run,
            open_calls(connection, lease.run_id),
            queued_behind=len(unfinished_runs(connection, lease.thread_id)) > 1,
            cancel_requested_by=row.cancel_requested_by,
            at=step.events[-1].at,
        )
        if ending is not None:
            ended = change_run(connection, ending, seen=RunStatus.REQUIRES_ACTION)
            has_announced = outcome.has_announced or ended.has_announced
            return replace(ended, ending=ending, has_announced=has_announced), ending.run
        if _add_notices_of_calls(connection, step):
            outcome = replace(outcome, has_announced=True)
    return outcome, step.run


def append_events(connection: Connection, lease: Lease, events: tuple[NewEvent, ...]) -> Stages[int]:
    """Store only events. Returns the number of the last one. Raises LeaseLost."""
    counting = {"run_id": lease.run_id, "lease_epoch": lease.epoch, "event_count": len(events)}
    counted = _count_events.ask(connection, counting)
    yield
    row = counted.first()
    if row is None:
        raise LeaseLost(lease.run_id)
    last_seq, organization_id = row
    add_events(connection, organization_id, lease.run_id, events, last_seq=last_seq)
    return int(last_seq)


def change_run(connection: Connection, step: Step, *, seen: RunStatus) -> StepOutcome:
    """Store a step of a run without a worker, under the thread's lock."""
    row = _advanced(_change.ask(connection, {**_parameters(step, state_row(step.run)), "seen_status": seen.value}))
    if row is None:
        raise LookupError(f"run {step.run.id} is no longer {seen}, although its thread is locked")
    outcome = completed(_store_rest(connection, step, row))
    return replace(outcome, has_announced=True) if _add_notices_of_calls(connection, step) else outcome


def claim_run(
    connection: Connection, step: Step, lease: dict[str, object], bounds: RunningBounds
) -> Stages[StepOutcome | None]:
    """Store the claiming step with the lease (`new_worker_id`, `new_lease_expires_at`); None if
    another worker was first, or within the bounds no place is free."""
    taken = step.run
    claiming = {
        "new_epoch": taken.epoch,
        "new_attempt": taken.attempt,
        "new_started_at": taken.started_at,
        **lease,
        **_parameters(step, state_row(taken)),
    }
    if bounds == NO_BOUNDS:
        claimed = _claim.ask(connection, claiming)
    else:
        lock_running(connection)
        claimed = _claim_with_place.ask(connection, {**claiming, **bounds.parameters})
    yield
    row = _advanced(claimed)
    return None if row is None else (yield from _store_rest(connection, step, row))


def follow_up(wakeups: Wakeups, changed: Run, *, has_announced: bool = True) -> None:
    """Notify subscribers of a changed run. `has_announced` is False where no delivery can have been
    stored."""
    wakeups.wake(events_topic(changed.id))
    if changed.status.is_terminal or changed.status is RunStatus.REQUIRES_ACTION:
        wakeups.wake(status_topic(changed.id))
        if has_announced:
            wakeups.wake(WEBHOOKS_TOPIC)
    if may_let_workflow_go_on(changed):
        wakeups.wake(WORKFLOWS_TOPIC)


def waker(wakeups: Wakeups, run_id: RunId) -> Callable[[object], None]:
    """Wakes the run's events topic for any result of the unit."""
    topic = events_topic(run_id)
    return lambda _: wakeups.wake(topic)


def _add_notices_of_calls(connection: Connection, step: Step) -> bool:
    """Store what a suspended run waits for besides approvals, for the webhook of the inbox. What
    was stored before stays as it is. Whether there was anything."""
    moments = [*(event.at for event in step.events), *(entry.at for entry in step.audit)]
    if step.run.status is not RunStatus.REQUIRES_ACTION or not moments:
        return False
    notices = of_pending_calls(step.run, at=max(moments))
    add_notices(connection, notices)
    return bool(notices)


def _quarantining(quarantine: Quarantine, halted: Run) -> dict[str, Any]:
    return {
        "of_thread": halted.thread_id,
        "since": quarantine.at,
        "by": quarantine.run_id,
        "token_id": quarantine.canary_id,
    }


def _parameters(step: Step, row: dict[str, object]) -> dict[str, Any]:
    state = dict(zip(map("new_".__add__, row), row.values(), strict=True))
    return {"run_id": step.run.id, "event_count": len(step.events), **state}


def _store_rest(
    connection: Connection, step: Step, row: _Advanced, items: SealedItems = _NO_REPLY
) -> Stages[StepOutcome]:
    after = step.run
    organization_id, run_id = after.organization_id, after.id
    with pipelined(connection):
        check_changed = change_calls(connection, run_id, step.changed)
        add_events(connection, organization_id, run_id, step.events, last_seq=row.last_seq, messages=step.messages)
        add_messages(connection, organization_id, step.messages, items)
        add_calls(connection, organization_id, step.recorded)
        check_settled = settle_calls(connection, run_id, step.settled, step.messages)
        record(connection, *step.audit)
        add_spending(connection, after, step.spent)
        if after.overview is not None and row.without_overview:
            _set_overview.run(connection, {"of_run": run_id, "new_overview": after.overview})
        if after.status.is_terminal and row.rolled_back:
            _supersede.run(connection, {"of_run": run_id})
    next_one = ask_next_run(connection, after.thread_id) if after.status.is_terminal else None
    pushes: Callable[[], PushReceivers] = ask_push_receivers(connection, run_id) if row.has_push_configs else list
    yield
    check_changed()
    check_settled()
    add_approvals(connection, step.approvals)
    end_approvals(connection, step.outcomes)
    has_announced = add_announcements(connection, after, step.events, last_seq=row.last_seq, pushes=pushes())
    if step.quarantine is not None:
        connection.execute(_quarantine, _quarantining(step.quarantine, after))
        add_notices(connection, [of_quarantine(organization_id, after.thread_id, step.quarantine, run_id)])
    # In quarantine no run of the thread may be claimed; the caller has checked this.
    promoted = next_one() if next_one is not None and step.quarantine is None else None
    has_announced = has_announced or bool(step.approvals) or step.quarantine is not None
    return StepOutcome(last_seq=row.last_seq, promoted=promoted, has_announced=has_announced)
