"""Port to the runs that have not ended, for those who stop many of them."""

from dataclasses import dataclass
from typing import Protocol

from domain.ids import AgentId, McpServerId, OrganizationId, RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedFilter:
    """Runs of one of `agent_ids`, or with an unsettled call of `server_id`. With neither given: all."""

    agent_ids: frozenset[AgentId] | None = None
    server_id: McpServerId | None = None


class UnfinishedRuns(Protocol):
    """Reads runs that are queued, in progress or waiting."""

    async def batch(
        self, organization_id: OrganizationId, wanted: UnfinishedFilter, *, before: RunId | None, limit: int
    ) -> tuple[RunId, ...]:
        """Up to `limit` of the organization's, by falling id, from below `before`."""
        ...
