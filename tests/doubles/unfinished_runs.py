"""Unfinished runs in memory, for those who stop many of them."""

from application.runs.unfinished_runs import UnfinishedFilter
from domain.identity.impersonation import who_acts
from domain.ids import OrganizationId, RunId
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from tests.doubles.state import InMemoryState, StoredRun


class InMemoryUnfinishedRuns:
    """The `UnfinishedRuns` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def batch(
        self, organization_id: OrganizationId, wanted: UnfinishedFilter, *, before: RunId | None, limit: int
    ) -> tuple[RunId, ...]:
        """The organization's, by falling id."""
        found = [
            stored.run.id
            for stored in self._state.runs.values()
            if stored.run.organization_id == organization_id
            and not stored.run.status.is_terminal
            and (before is None or stored.run.id < before)
            and _matches(stored, wanted)
        ]
        return tuple(sorted(found, reverse=True)[:limit])


def _matches(stored: StoredRun, wanted: UnfinishedFilter) -> bool:
    if wanted.lane not in (None, stored.run.lane) or (wanted.queued and stored.run.status is not RunStatus.QUEUED):
        return False
    if (wanted.agent_ids, wanted.server_id, wanted.requested_by) == (None, None, None):
        return True
    if stored.run.requested_by is not None and wanted.requested_by in (
        stored.run.requested_by,
        who_acts(stored.run.requested_by),
    ):
        return True
    if wanted.agent_ids is not None and stored.run.agent_id in wanted.agent_ids:
        return True
    return wanted.server_id is not None and any(
        call.server_id == wanted.server_id and call.state is not ToolCallState.SETTLED for call in stored.calls.values()
    )
