"""Reads which flow submitted runs wait in, for the queue of a single process."""

import logging
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, literal, null, select

from application.identity.ports import OrganizationStore
from domain.ids import OrganizationId, RunId
from domain.runs.lane import Flow, Lane
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import agent, run, workflow_run

logger = logging.getLogger(__name__)

_flow = Prepared(
    select(run.c.id, run.c.organization_id, run.c.lane, run.c.agent_id, agent.c.max_running)
    .join(agent, agent.c.id == run.c.agent_id)
    .where(run.c.id == bindparam("run_id"))
    .union_all(
        select(
            workflow_run.c.id, workflow_run.c.organization_id, literal(Lane.NORMAL.value), literal(""), null()
        ).where(workflow_run.c.id == bindparam("run_id"))
    )
)


class SqlRunFlows:
    """One read for all runs; weights and bounds of organizations come from memory."""

    def __init__(self, *, database: Database, organizations: OrganizationStore) -> None:
        self._database = database
        self._organizations = organizations

    async def of(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Flow]:
        """The flows of the runs that exist. Raises ServiceError without storage."""

        def read(connection: Connection) -> list[tuple[str, str, str, str, int | None]]:
            return [row for run_id in run_ids for row in _flow.ask(connection, {"run_id": run_id}).all()]

        rows = await self._database.read(read, scope=SYSTEM)
        owners = {owner: await self._organizations.get(OrganizationId(owner)) for owner in {row[1] for row in rows}}
        return {
            RunId(run_id): Flow(
                organization_id=owner_id,
                lane=_lane(lane),
                agent_id=agent_id,
                weight=1 if owner is None else owner.queue_weight,
                max_running=None if owner is None else owner.max_running,
                agent_max_running=agent_bound,
            )
            for run_id, owner_id, lane, agent_id, agent_bound in rows
            for owner in (owners[owner_id],)
        }


def _lane(stored: str) -> Lane:
    """A lane that only newer code knows is the default one here."""
    try:
        return Lane(stored)
    except ValueError:
        logger.warning("a run waits in the lane %s, because its lane is unknown", Lane.NORMAL, extra={"lane": stored})
        return Lane.NORMAL
