"""Port to unfinished runs, for cancelling many."""

from dataclasses import dataclass
from typing import Protocol

from domain.ids import AgentId, ApiKeyId, McpServerId, OrganizationId, RunId
from domain.runs.lane import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedFilter:
    """Runs of one of `agent_ids`, with an unsettled call of `server_id`, or that `requested_by`
    started, also acting as another user. Without any of them: all. Of these, only the ones in
    `lane`, and only `queued` ones."""

    agent_ids: frozenset[AgentId] | None = None
    server_id: McpServerId | None = None
    requested_by: ApiKeyId | None = None
    lane: Lane | None = None
    queued: bool = False


class UnfinishedRuns(Protocol):
    """Reads runs that are queued, in progress or suspended."""

    async def batch(
        self, organization_id: OrganizationId, wanted: UnfinishedFilter, *, before: RunId | None, limit: int
    ) -> tuple[RunId, ...]:
        """Up to `limit` runs of the organization by descending id, below `before`."""
