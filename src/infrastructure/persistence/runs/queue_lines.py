"""The lines of the queue, and runs that no longer progress, in SQL over the partial index of
unfinished runs."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, case, func, select

from application.runs.queue_lines import QueueLine, StuckRun
from domain.ids import AgentId, OrganizationId, RunId, ThreadId
from domain.runs.lane import Lane
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.teams import Teams
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import run, run_event
from infrastructure.persistence.threads.queue import is_unfinished

# Literal in the statement, so that the partial index over queued runs is used.
_is_queued = run.c.status == bindparam("queued", RunStatus.QUEUED.value, literal_execute=True)
_in_progress = run.c.status == RunStatus.IN_PROGRESS.value
# An unknown lane is that of newer code.
_lane = case((run.c.lane.in_([lane.value for lane in Lane]), run.c.lane), else_=Lane.NORMAL.value)
_line = (run.c.organization_id, run.c.agent_id, _lane.label("lane"))
queued_lines = (
    select(*_line, func.count().label("runs"), func.min(run.c.created_at).label("oldest"))
    .where(_is_queued)
    .group_by(run.c.organization_id, run.c.agent_id, _lane)
)
_running_lines = (
    select(*_line, func.count().label("runs"))
    .where(is_unfinished, _in_progress)
    .group_by(run.c.organization_id, run.c.agent_id, _lane)
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

    async def lines(self, organization_id: OrganizationId | None, *, teams: Teams = None) -> tuple[QueueLine, ...]:
        own = seen_by(teams, run.c.team)
        if organization_id is not None:
            own = (*own, run.c.organization_id == organization_id)

        def unit(connection: Connection) -> tuple[QueueLine, ...]:
            queued = {tuple(row[:3]): row for row in connection.execute(queued_lines.where(*own))}
            running = {tuple(row[:3]): row.runs for row in connection.execute(_running_lines.where(*own))}
            lines = (
                QueueLine(
                    organization_id=OrganizationId(key[0]),
                    agent_id=AgentId(key[1]),
                    lane=Lane(key[2]),
                    queued=queued[key].runs if key in queued else 0,
                    running=running.get(key, 0),
                    oldest_queued_at=queued[key].oldest if key in queued else None,
                )
                for key in {**queued, **running}
            )
            return tuple(sorted(lines, key=lambda line: (-line.queued, line.organization_id, line.agent_id, line.lane)))

        return await self._database.read(unit, scope=SYSTEM if organization_id is None else organization_id)

    async def stuck(
        self,
        organization_id: OrganizationId,
        *,
        since: datetime,
        agent_id: AgentId | None,
        limit: int,
        teams: Teams = None,
    ) -> tuple[StuckRun, ...]:
        statement = _stuck.where(*seen_by(teams, run.c.team))
        if agent_id is not None:
            statement = statement.where(run.c.agent_id == agent_id)
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
