"""Reads which flow submitted runs wait in, for the queue of a single process."""

import logging
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, literal, null, select

from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from domain.ids import AgentId, OrganizationId, RunId
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


_Row = tuple[str, str, str, str, int | None]
"""Run, organization, lane, agent, and the agent's bound."""


class SqlRunFlows:
    """One read for all runs whose lines are not known yet; weights and bounds of organizations, and
    bounds of the agents of known lines, come from memory."""

    def __init__(self, *, database: Database, organizations: OrganizationStore, agents: AgentStore) -> None:
        self._database = database
        self._organizations = organizations
        self._agents = agents

    async def of(self, runs: Mapping[RunId, Flow | None]) -> Mapping[RunId, Flow]:
        """The flows of the runs that exist; of a flow that is given, its line is known. Raises
        ServiceError without storage."""
        known = {run_id: await self._known(run_id, line) for run_id, line in runs.items() if line is not None}
        rows = [row for row in known.values() if row is not None]
        unknown = [run_id for run_id in runs if known.get(run_id) is None]

        def read(connection: Connection) -> list[_Row]:
            return [row for run_id in unknown for row in _flow.ask(connection, {"run_id": run_id}).all()]

        if unknown:
            rows += await self._database.read(read, scope=SYSTEM)
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

    async def _known(self, run_id: RunId, line: Flow) -> _Row | None:
        """None if the agent was deleted meanwhile: its row still has the bound."""
        agent = await self._agents.get(OrganizationId(line.organization_id), AgentId(line.agent_id))
        if agent is None:
            return None
        return run_id, line.organization_id, line.lane, line.agent_id, agent.config.max_running


def _lane(stored: str) -> Lane:
    """A lane that only newer code knows is the default one here."""
    try:
        return Lane(stored)
    except ValueError:
        logger.warning("a run waits in the lane %s, because its lane is unknown", Lane.NORMAL, extra={"lane": stored})
        return Lane.NORMAL
