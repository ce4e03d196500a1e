"""Admission of new runs in SQL, exact over all processes."""

from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select, text

from application.runs.ports import NewRun
from domain.runs.admission import QueuedRuns, require_place
from domain.runs.run import RunStatus
from infrastructure.persistence.tables import run

# Literal in the statements, so that the partial index over queued runs is used.
_queued: Select[Any, Any] = (
    select(func.count(), func.min(run.c.created_at))
    .where(run.c.organization_id == bindparam("organization_id"))
    .where(run.c.status == bindparam("queued", RunStatus.QUEUED.value, literal_execute=True))
)
_queued_of_agent = _queued.where(run.c.agent_id == bindparam("agent_id"))
_lock = text("SELECT pg_advisory_xact_lock(hashtext('admission'), hashtext(:organization_id))")


def admit(connection: Connection, new: NewRun) -> None:
    """Raise LIMIT `queue_full` if the organization or the agent has no place in the queue. The last lock of a start: starts of
    an organization with a bound wait for each other from here to their commit; SQLite has one writer."""
    admission, run_ = new.admission, new.run
    if not admission.is_bounded:
        return
    wanted = {"organization_id": run_.organization_id, "agent_id": run_.agent_id}
    if connection.dialect.name != "sqlite":
        connection.execute(_lock, {"organization_id": run_.organization_id})
    if admission.organization is not None:
        require_place("organization", admission.organization, _count(connection, _queued, wanted), at=run_.created_at)
    if admission.agent is not None:
        require_place("agent", admission.agent, _count(connection, _queued_of_agent, wanted), at=run_.created_at)


def _count(connection: Connection, statement: Select[Any, Any], wanted: dict[str, str]) -> QueuedRuns:
    count, since = connection.execute(statement, wanted).one()
    return QueuedRuns(count=count, since=since)
