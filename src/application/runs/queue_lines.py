"""Ports to the queue as operators see it: its lines, and runs that no longer progress."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.ids import AgentId, OrganizationId
from domain.runs.lane import Lane
from domain.runs.lease import Lease
from domain.teams import Teams


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """The queued runs of an agent in a lane, and those in progress. `oldest_queued_at` is when the
    first of the queued ones was created; None without any."""

    organization_id: OrganizationId
    agent_id: AgentId
    lane: Lane
    queued: int
    running: int
    oldest_queued_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRun:
    """A run in progress, with its lease and the number of its newest event."""

    lease: Lease
    last_seq: int


class QueueReader(Protocol):
    """Reads stored runs; the queue itself only signals them."""

    async def lines(self, organization_id: OrganizationId | None, *, teams: Teams = None) -> tuple[QueueLine, ...]:
        """Lines with queued runs or runs in progress, of the organization or of all, those with
        most queued runs first. Of runs that teams own, only those of `teams`."""

    async def stuck(
        self,
        organization_id: OrganizationId,
        *,
        since: datetime,
        agent_id: AgentId | None,
        limit: int,
        teams: Teams = None,
    ) -> tuple[StuckRun, ...]:
        """Runs in progress whose newest event is not after `since`, of the agent or of all, at most
        `limit`; of those that teams own, only those of `teams`."""
