"""The unfinished runs of a thread, and the lock under which one transaction at a time decides about
them."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, FromClause, bindparam, case, exists, select

from domain.ids import OrganizationId, RunId, ThreadId
from domain.runs.run import RunStatus
from domain.runs.starting import thread_busy
from domain.threads.thread import thread_quarantined
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import run, thread

# Literal in the statements, in the order of the index's condition: SQLite requires this for a
# partial index.
_statuses = [RunStatus.QUEUED.value, RunStatus.IN_PROGRESS.value, RunStatus.REQUIRES_ACTION.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTeam:
    """The team of a locked thread; `name` None: it belongs to the organization."""

    name: str | None


def unfinished(runs: FromClause) -> ColumnElement[bool]:
    """Whether a run of the table, or of another name of it, is unfinished."""
    return runs.c.status.in_(bindparam("unfinished", _statuses, expanding=True, literal_execute=True))


is_unfinished = unfinished(run)

queue_order = (
    case((run.c.status == RunStatus.QUEUED.value, 1), else_=0),
    case((run.c.attempt == 0, 1), else_=0),
    run.c.created_at,
    run.c.id,
)
"""The active run, then queued ones in the order of claims: started ones first, then by age."""

# NO KEY UPDATE, so that workers can insert messages, whose foreign key locks the thread's key.
_lock = Prepared(
    select(thread.c.id, thread.c.team)
    .where(thread.c.organization_id == bindparam("organization_id"), thread.c.id == bindparam("thread_id"))
    .with_for_update(key_share=True)
)
_lock_of_run = Prepared(
    select(thread.c.id)
    .where(
        thread.c.id
        == select(run.c.thread_id).where(run.c.id == bindparam("run_id", type_=run.c.id.type)).scalar_subquery()
    )
    .with_for_update(key_share=True)
)
_select_unfinished = (
    select(run.c.id, run.c.status)
    .where(run.c.thread_id == bindparam("thread_id"), is_unfinished)
    .order_by(*queue_order)
)
_unfinished = Prepared(_select_unfinished)
_first = _select_unfinished.limit(1)
in_quarantine = exists().where(thread.c.id == run.c.thread_id, thread.c.quarantined_at.is_not(None))
"""Whether the run's thread is quarantined."""
_next = Prepared(_first.where(~in_quarantine))
_quarantined = select(thread.c.quarantined_by).where(
    thread.c.id == bindparam("thread_id"), thread.c.quarantined_at.is_not(None)
)


def lock_thread(connection: Connection, organization_id: OrganizationId, thread_id: ThreadId) -> bool:
    """Prevent other transactions from starting, claiming or ending runs of the thread. False
    without the thread.

    Always taken before any run is touched, to avoid deadlocks. SQLite has one writer, so only
    the thread's existence is checked.
    """
    return locked_team(connection, organization_id, thread_id) is not None


def locked_team(connection: Connection, organization_id: OrganizationId, thread_id: ThreadId) -> LockedTeam | None:
    """As `lock_thread`, with the team that the thread belongs to. None without the thread."""
    row = _lock.ask(connection, {"organization_id": organization_id, "thread_id": thread_id}).first()
    return None if row is None else LockedTeam(name=row[1])


def lock_thread_of(connection: Connection, run_id: RunId) -> None:
    """As `lock_thread`, by a run of the thread, before the next query. Free on SQLite."""
    if connection.dialect.name != "sqlite":
        _lock_of_run.ask(connection, {"run_id": run_id})


def unfinished_runs(connection: Connection, thread_id: ThreadId) -> list[AnyRow]:
    """`id, status` of the thread's unfinished runs in the order of the queue."""
    return _unfinished.ask(connection, {"thread_id": thread_id}).typed()


def next_run(connection: Connection, thread_id: ThreadId) -> RunId | None:
    """The queued run that may be claimed on this thread, if any; none in quarantine."""
    return ask_next_run(connection, thread_id)()


def ask_next_run(connection: Connection, thread_id: ThreadId) -> Callable[[], RunId | None]:
    """As `next_run`, to be read in the next stage."""
    found = _next.ask(connection, {"thread_id": thread_id})

    def read() -> RunId | None:
        row = found.first()
        return RunId(row[0]) if row is not None and row[1] == RunStatus.QUEUED.value else None

    return read


def quarantined_by(connection: Connection, thread_id: ThreadId) -> RunId | None:
    """The run that quarantined the thread, until its release."""
    row = connection.execute(_quarantined, {"thread_id": thread_id}).first()
    return None if row is None else RunId(row.quarantined_by)


def refuse_if_quarantined(connection: Connection, thread_id: ThreadId) -> None:
    """Raise CONFLICT `thread_quarantined` until the thread is released."""
    run_id = quarantined_by(connection, thread_id)
    if run_id is not None:
        raise thread_quarantined(thread_id, run_id)


def refuse_if_busy(connection: Connection, thread_id: ThreadId) -> None:
    """Raise CONFLICT `thread_busy` while a run of the thread is unfinished."""
    row = connection.execute(_first, {"thread_id": thread_id}).first()
    if row is not None:
        raise thread_busy(RunId(row.id), RunStatus(row.status))
