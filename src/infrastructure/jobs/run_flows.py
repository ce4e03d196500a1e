"""Reads which flow submitted runs wait in, for the queue of a single process."""

import logging
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, literal, select

from application.identity.ports import OrganizationStore
from domain.ids import OrganizationId, RunId
from domain.runs.lane import Flow, Lane
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import run, workflow_run

logger = logging.getLogger(__name__)

_flow = Prepared(
    select(run.c.id, run.c.organization_id, run.c.lane, run.c.agent_id)
    .where(run.c.id == bindparam("run_id"))
    .union_all(
        select(workflow_run.c.id, workflow_run.c.organization_id, literal(Lane.NORMAL.value), literal("")).where(
            workflow_run.c.id == bindparam("run_id")
        )
    )
)


class SqlRunFlows:
    """One read for all runs; weights come from organizations in memory."""

    def __init__(self, *, database: Database, organizations: OrganizationStore) -> None:
        self._database = database
        self._organizations = organizations

    async def of(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Flow]:
        """The flows of the runs that exist. Raises ServiceError without storage."""

        def read(connection: Connection) -> list[tuple[str, str, str, str]]:
            return [row for run_id in run_ids for row in _flow.ask(connection, {"run_id": run_id}).all()]

        rows = await self._database.read(read, scope=SYSTEM)
        weights = {owner: await self._weight(OrganizationId(owner)) for owner in {row[1] for row in rows}}
        return {
            RunId(run_id): Flow(organization_id=owner, lane=_lane(lane), agent_id=agent_id, weight=weights[owner])
            for run_id, owner, lane, agent_id in rows
        }

    async def _weight(self, organization_id: OrganizationId) -> int:
        organization = await self._organizations.get(organization_id)
        return 1 if organization is None else organization.queue_weight


def _lane(stored: str) -> Lane:
    """A lane that only newer code knows is the default one here."""
    try:
        return Lane(stored)
    except ValueError:
        logger.warning("a run waits in the lane %s, because its lane is unknown", Lane.NORMAL, extra={"lane": stored})
        return Lane.NORMAL
