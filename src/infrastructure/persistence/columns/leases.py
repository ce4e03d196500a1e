"""SQL of leases: the tables of runs and workflow runs have the same lease columns."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, Table, Update, bindparam, update

from domain.ids import WorkerId
from domain.runs.run import RunStatus

_EVERY_LEASE = timedelta(days=1)
"""Upper bound of a lease's duration."""


def renewing(table: Table) -> Update:
    columns = table.c
    return (
        update(table)
        .where(
            columns.id.in_(bindparam("run_ids", expanding=True)),
            columns.worker_id == bindparam("of_worker"),
            columns.status == RunStatus.IN_PROGRESS.value,  # the same value for both kinds of run
        )
        .values(lease_expires_at=bindparam("new_expiry"))
        .returning(columns.id, columns.epoch)
    )


def held_after(
    connection: Connection, renew: Update, worker_id: WorkerId, run_ids: Iterable[str], *, until: datetime
) -> set[tuple[str, int]]:
    """Extend the worker's leases on these runs. Returns run and epoch of each valid lease."""
    wanted = {"run_ids": sorted(set(run_ids)), "of_worker": worker_id, "new_expiry": until}
    return {(row.id, row.epoch) for row in connection.execute(renew, wanted)}


def expired_by(at: datetime, *, sole_owner: bool) -> datetime:
    """Leases that end by this time have expired: all of them for the sole owner of the database."""
    return at + _EVERY_LEASE if sole_owner else at
