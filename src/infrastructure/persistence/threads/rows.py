"""Threads to rows and back."""

from typing import cast

from sqlalchemy import Connection

from domain.ids import MessageId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import ForkPoint, Quarantine, Thread
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import thread

_insert = Prepared(
    thread.insert().inline(),
    columns=[column.name for column in thread.columns if not column.name.startswith("quarantined")],
)


def add_thread(connection: Connection, new: Thread) -> None:
    _insert.run(
        connection,
        {
            "id": new.id,
            "organization_id": new.organization_id,
            "metadata": new.metadata,
            "created_at": new.created_at,
            "forked_from": None if new.forked_from is None else new.forked_from.thread_id,
            "forked_before": None if new.forked_from is None else new.forked_from.before,
            "team": new.team,
        },
    )


def thread_of(row: AnyRow) -> Thread:
    return Thread(
        id=ThreadId(row.id),
        organization_id=OrganizationId(row.organization_id),
        metadata=cast(JsonObject, row.metadata),
        created_at=row.created_at,
        quarantine=_quarantine_of(row),
        forked_from=_fork_point_of(row),
        team=row.team,
    )


def _quarantine_of(row: AnyRow) -> Quarantine | None:
    if row.quarantined_at is None:
        return None
    return Quarantine(run_id=RunId(row.quarantined_by), canary_id=row.quarantined_for, at=row.quarantined_at)


def _fork_point_of(row: AnyRow) -> ForkPoint | None:
    if row.forked_from is None:
        return None
    before = None if row.forked_before is None else MessageId(row.forked_before)
    return ForkPoint(thread_id=ThreadId(row.forked_from), before=before)
