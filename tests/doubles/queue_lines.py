"""The lines of the queue in memory."""

from datetime import datetime

from application.runs.queue_lines import QueueLine, StuckRun
from domain.ids import AgentId, OrganizationId
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.teams import Teams, sees
from tests.doubles.state import InMemoryState


class InMemoryQueueReader:
    """The `QueueReader` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def lines(self, organization_id: OrganizationId | None, *, teams: Teams = None) -> tuple[QueueLine, ...]:
        """Those with most queued runs first."""
        runs = [
            stored.run
            for stored in self._state.runs.values()
            if organization_id in (None, stored.run.organization_id)
            and stored.run.status in (RunStatus.QUEUED, RunStatus.IN_PROGRESS)
            and sees(teams, stored.run.team)
        ]
        lines = []
        for owner, agent_id, lane in {(run.organization_id, run.agent_id, run.lane) for run in runs}:
            own = [run for run in runs if (run.organization_id, run.agent_id, run.lane) == (owner, agent_id, lane)]
            queued = [run.created_at for run in own if run.status is RunStatus.QUEUED]
            lines.append(
                QueueLine(
                    organization_id=owner,
                    agent_id=agent_id,
                    lane=lane,
                    queued=len(queued),
                    running=len(own) - len(queued),
                    oldest_queued_at=min(queued, default=None),
                )
            )
        return tuple(
            sorted(lines, key=lambda line: (-line.queued, line.organization_id, line.agent_id, line.lane.value))
        )

    async def stuck(
        self,
        organization_id: OrganizationId,
        *,
        since: datetime,
        agent_id: AgentId | None,
        limit: int,
        teams: Teams = None,
    ) -> tuple[StuckRun, ...]:
        """Longest without an event first."""
        found = [
            stored
            for stored in self._state.runs.values()
            if stored.run.organization_id == organization_id
            and stored.run.status is RunStatus.IN_PROGRESS
            and agent_id in (None, stored.run.agent_id)
            and stored.events[-1].at <= since
            and sees(teams, stored.run.team)
        ]
        return tuple(
            StuckRun(
                lease=Lease(
                    run_id=stored.run.id,
                    organization_id=organization_id,
                    thread_id=stored.run.thread_id,
                    epoch=stored.run.epoch,
                ),
                last_seq=stored.run.last_seq,
            )
            for stored in sorted(found, key=lambda stored: stored.events[-1].at)[:limit]
        )
