"""Stopping an unfinished run from outside: at once where nobody executes it, else by asking."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, update

from application.runs.ports import CancelOutcome
from domain.runs.closing import cancelled_step
from domain.runs.run import Run, RunStatus
from infrastructure.persistence.runs.ledger_rows import open_calls
from infrastructure.persistence.runs.steps import change_run
from infrastructure.persistence.tables import run

_ask = update(run).where(run.c.id == bindparam("run_id")).values(cancel_requested_by=bindparam("actor"))


def stop_run(connection: Connection, stored: Run, *, actor: str, at: datetime) -> CancelOutcome:
    """Under the thread's lock: cancel a queued or waiting run with its open calls answered, or mark one in progress."""
    if stored.status is RunStatus.IN_PROGRESS:
        connection.execute(_ask, {"run_id": stored.id, "actor": actor})
        return CancelOutcome(run=replace(stored, cancel_requested_by=actor))
    step = cancelled_step(stored, open_calls(connection, stored.id), at=at, actor=actor)
    outcome = change_run(connection, step, seen=stored.status)
    return CancelOutcome(run=replace(step.run, last_seq=outcome.last_seq), promoted=outcome.promoted)
