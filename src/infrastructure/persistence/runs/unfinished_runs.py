"""Unfinished runs in SQL, for cancelling many."""

from sqlalchemy import ColumnElement, bindparam, exists, or_, select

from application.runs.unfinished_runs import UnfinishedFilter
from domain.identity.impersonation import as_others
from domain.ids import OrganizationId, RunId
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from infrastructure.persistence.columns.starters import is_started_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import run, tool_call
from infrastructure.persistence.threads.queue import is_unfinished


class SqlUnfinishedRuns:
    """The `UnfinishedRuns` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def batch(
        self, organization_id: OrganizationId, wanted: UnfinishedFilter, *, before: RunId | None, limit: int
    ) -> tuple[RunId, ...]:
        statement = select(run.c.id).where(run.c.organization_id == organization_id, is_unfinished)
        conditions: list[ColumnElement[bool]] = []
        if wanted.agent_ids is not None:
            agent_ids = sorted(wanted.agent_ids)
            conditions.append(run.c.agent_id.in_(bindparam("agent_ids", agent_ids, expanding=True)))
        if wanted.server_id is not None:
            conditions.append(
                exists().where(
                    tool_call.c.run_id == run.c.id,
                    tool_call.c.server_id == wanted.server_id,
                    tool_call.c.state != ToolCallState.SETTLED.value,
                )
            )
        if wanted.requested_by is not None:
            as_another = as_others(wanted.requested_by)
            conditions.append(is_started_by(run.c.requested_by, wanted.requested_by, as_another))
        if conditions:
            statement = statement.where(or_(*conditions))
        if wanted.lane is not None:
            statement = statement.where(run.c.lane == wanted.lane.value)
        if wanted.queued:
            statement = statement.where(run.c.status == RunStatus.QUEUED.value)
        if before is not None:
            statement = statement.where(run.c.id < before)
        ordered = statement.order_by(run.c.id.desc()).limit(limit)
        found = await self._database.read(
            lambda connection: connection.execute(ordered).scalars().all(), scope=organization_id
        )
        return tuple(RunId(run_id) for run_id in found)
