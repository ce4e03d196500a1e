"""Counts unfinished rows in SQL over their partial indexes."""

from sqlalchemy import Connection, bindparam, func, select

from application.metrics.ports import Backlog
from domain.approvals.approval import ApprovalState
from domain.runs.run import RunStatus
from domain.workflows.run import WorkflowRunStatus
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import approval, run, webhook_delivery, workflow_run
from infrastructure.persistence.threads.queue import is_unfinished
from infrastructure.persistence.webhooks.rows import is_open

_runs = select(run.c.status, func.count()).where(is_unfinished).group_by(run.c.status)
_oldest = select(func.min(run.c.created_at)).where(
    is_unfinished, run.c.status == RunStatus.QUEUED.value, run.c.attempt == 0
)
_workflow_runs = (
    select(workflow_run.c.status, func.count())
    .where(workflow_run.c.finished_at.is_(None))
    .group_by(workflow_run.c.status)
)
# Literal in the statement, so that the partial index over pending rows is used.
_is_pending = approval.c.state == bindparam("pending", ApprovalState.PENDING.value, literal_execute=True)
_approvals = select(func.count()).select_from(approval).where(_is_pending)
_deliveries = select(func.count(), func.min(webhook_delivery.c.next_attempt_at)).where(is_open)


class SqlBacklogReader:
    """The `BacklogReader` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def read(self) -> Backlog:
        return await self._database.read(_read, scope=SYSTEM)


def _read(connection: Connection) -> Backlog:
    deliveries = connection.execute(_deliveries).one()
    return Backlog(
        runs={RunStatus(status): count for status, count in connection.execute(_runs)},
        workflow_runs={WorkflowRunStatus(status): count for status, count in connection.execute(_workflow_runs)},
        oldest_queued_at=connection.execute(_oldest).scalar_one(),
        pending_approvals=connection.execute(_approvals).scalar_one(),
        open_deliveries=deliveries[0],
        oldest_delivery_at=deliveries[1],
    )
