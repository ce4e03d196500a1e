"""The lines of the queue, and runs that no longer progress, in SQL over the partial index of unfinished runs."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, case, func, select

from application.runs.queue_lines import QueueLine, StuckRun
from domain.ids import AgentId, OrganizationId, RunId, ThreadId
from domain.runs.lane import Lane
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import run, run_event
from infrastructure.persistence.threads.queue import is_unfinished

_is_queued = run.c.status == RunStatus.QUEUED.value
_in_progress = run.c.status == RunStatus.IN_PROGRESS.value
_queued = func.count().filter(_is_queued)
# An unknown lane is that of newer code.
_lane = case((run.c.lane.in_([lane.value for lane in Lane]), run.c.lane), else_=Lane.NORMAL.value)
_lines = (
    select(
        run.c.organization_id,
        run.c.agent_id,
        _lane.label("lane"),
        _queued.label("queued"),
        func.count().filter(_in_progress).label("running"),
        func.min(case((_is_queued, run.c.created_at))).label("oldest"),
    )
    .where(is_unfinished, _is_queued | _in_progress)
    .group_by(run.c.organization_id, run.c.agent_id, _lane)
    .order_by(_queued.desc(), run.c.organization_id, run.c.agent_id, _lane)
)
_stuck = (
    select(run.c.id, run.c.thread_id, run.c.epoch, run.c.last_seq)
    .join(run_event, (run_event.c.run_id == run.c.id) & (run_event.c.seq == run.c.last_seq))
    .where(
        is_unfinished,
        _in_progress,
        run.c.organization_id == bindparam("organization_id"),
        run_event.c.at <= bindparam("since"),
    )
    .order_by(run_event.c.at)
    .limit(bindparam("limit"))
)


class SqlQueueReader:
    """The `QueueReader` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def lines(self, organization_id: OrganizationId | None) -> tuple[QueueLine, ...]:
        statement = _lines if organization_id is None else _lines.where(run.c.organization_id == organization_id)

        def unit(connection: Connection) -> tuple[QueueLine, ...]:
            return tuple(
                QueueLine(
                    organization_id=OrganizationId(row.organization_id),
                    agent_id=AgentId(row.agent_id),
                    lane=Lane(row.lane),
                    queued=row.queued,
                    running=row.running,
                    oldest_queued_at=row.oldest,
                )
                for row in connection.execute(statement)
            )

        return await self._database.read(unit, scope=SYSTEM if organization_id is None else organization_id)

    async def stuck(
        self, organization_id: OrganizationId, *, since: datetime, agent_id: AgentId | None, limit: int
    ) -> tuple[StuckRun, ...]:
        statement = _stuck if agent_id is None else _stuck.where(run.c.agent_id == agent_id)
        wanted = {"organization_id": organization_id, "since": since, "limit": limit}

        def unit(connection: Connection) -> tuple[StuckRun, ...]:
            return tuple(
                StuckRun(
                    lease=Lease(
                        run_id=RunId(row.id),
                        organization_id=organization_id,
                        thread_id=ThreadId(row.thread_id),
                        epoch=row.epoch,
                    ),
                    last_seq=row.last_seq,
                )
                for row in connection.execute(statement, wanted)
            )

        return await self._database.read(unit, scope=organization_id)
