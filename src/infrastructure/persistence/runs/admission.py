"""Admission of runs to the queue, and of queued runs to workers, in SQL: exact over all
processes."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, func, select, text
from sqlalchemy.sql.elements import TextClause

from application.runs.new_run import NewRun
from domain.runs.admission import MAX_RUNNING, QueuedRuns, UserBound, require_active_place, require_place
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import run
from infrastructure.persistence.threads.queue import unfinished
from infrastructure.persistence.usage.counted_for import counted_for, counting_for

_NO_THREAD = ""
# Literal in the statements, so that the partial index over queued runs is used.
_queued = (run.c.organization_id == bindparam("organization_id")) & (
    run.c.status == bindparam("queued", RunStatus.QUEUED.value, literal_execute=True)
)
_of_agent = run.c.agent_id == bindparam("agent_id")
_count = select(func.count()).select_from(run).where(_queued)
active = (
    select(func.count())
    .select_from(run)
    .where(
        # With `coalesce`, the unfinished runs are read and not all of the organization.
        func.coalesce(run.c.organization_id, "") == bindparam("organization_id"),
        unfinished(run),
        run.c.status != bindparam("waiting", RunStatus.REQUIRES_ACTION.value, literal_execute=True),
        run.c.thread_id != bindparam("freed"),
        counted_for(run.c.requested_by),
    )
)
"""Active runs that count for a user, beside those of the thread `freed`."""
_since = select(func.min(run.c.created_at)).where(_queued, run.c.started_at.is_(None))


def _locking(*key: str) -> TextClause:
    """Takes an advisory lock until the commit. Waits 5 s for it, unless the transaction waits for
    locks a shorter time already; and a process that stands still while it has the lock loses its
    session after 5 s, so that it holds up nothing for longer."""
    lock_of = f"pg_advisory_xact_lock({', '.join(f'hashtext({part})' for part in key)})"
    waits = (
        "set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), '5s'), true),"
        " set_config('idle_in_transaction_session_timeout', '5s', true)"
    )
    return text(f"WITH waits AS MATERIALIZED (SELECT {waits}) SELECT {lock_of} FROM waits")  # noqa: S608  # names of ours alone


_lock = _locking("'admission'", ":organization_id")
# One lock for all organizations: groups of claims (ADR 0030) that took several in different orders
# would wait for each other.
_lock_running = Prepared(_locking("'running'"))
_other = run.alias("other")
_running = (
    select(func.count())
    .select_from(_other)
    .where(
        unfinished(_other), _other.c.status == bindparam("running", RunStatus.IN_PROGRESS.value, literal_execute=True)
    )
)
has_place = and_(
    *(
        _running.where(_other.c[f"{owner}_id"] == run.c[f"{owner}_id"]).scalar_subquery() < bindparam(f"max_of_{owner}")
        for owner in ("organization", "agent")
    )
)
"""Whether fewer runs than `RunningBounds.parameters` are in progress, of the organization and of
the agent of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBounds:
    """How many runs of the organization, and of the agent, may be in progress. None sets no
    bound."""

    organization: int | None = None
    agent: int | None = None

    @property
    def parameters(self) -> dict[str, int]:
        """Those of `has_place`."""
        return {"max_of_organization": self.organization or MAX_RUNNING, "max_of_agent": self.agent or MAX_RUNNING}


NO_BOUNDS = RunningBounds()


def lock_running(connection: Connection) -> None:
    """Claims of runs with a bound wait for each other from here to their commit. SQLite has one
    writer."""
    if connection.dialect.name != "sqlite":
        _lock_running.ask(connection, {})


def admit(connection: Connection, new: NewRun) -> None:
    """Raise LIMIT `queue_full` if the organization or the agent has no place in the queue,
    `user_runs_full` if the user has none. The last lock of a start: starts of an organization with
    a bound wait for each other from here to their commit; SQLite has one writer."""
    if not new.admission.is_bounded:
        return
    if connection.dialect.name != "sqlite":
        connection.execute(_lock, {"organization_id": new.run.organization_id})
    require_places(connection, new)


def require_places(connection: Connection, new: NewRun) -> None:
    """As `admit`, by what is committed, without the lock."""
    admission, run_ = new.admission, new.run
    wanted = {"organization_id": run_.organization_id, "agent_id": run_.agent_id}
    for owner, limit, own in (("organization", admission.organization, ()), ("agent", admission.agent, (_of_agent,))):
        if limit is None:
            continue
        count = connection.execute(_count.where(*own), wanted).scalar_one()
        if count >= limit:
            since = connection.execute(_since.where(*own), wanted).scalar_one()
            require_place(owner, limit, QueuedRuns(count=count, since=since), at=run_.created_at)
    if admission.of_user is not None:
        _require_active_place(connection, new, admission.of_user)


def _require_active_place(connection: Connection, new: NewRun, bound: UserBound) -> None:
    freed = new.run.thread_id if new.strategy.stops_others else _NO_THREAD
    counting = counting_for(bound.user_id, with_keys=bound.with_keys)
    wanted = {"organization_id": new.run.organization_id, "freed": freed, **counting}
    require_active_place(bound, connection.execute(active, wanted).scalar_one())
