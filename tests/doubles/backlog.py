"""What is stored and not over, in memory."""

from collections import Counter

from application.metrics.ports import Backlog
from domain.approvals.approval import ApprovalState
from domain.runs.run import RunStatus
from tests.doubles.state import InMemoryState


class InMemoryBacklogReader:
    """The `BacklogReader` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def read(self) -> Backlog:
        """The backlog at this moment."""
        runs = [stored.run for stored in self._state.runs.values() if not stored.run.status.is_terminal]
        workflow_runs = [
            stored.run for stored in self._state.workflow_runs.values() if not stored.run.status.is_terminal
        ]
        deliveries = [each.delivery for each in self._state.deliveries.values() if each.delivery.state.is_open]
        fresh = [run.created_at for run in runs if run.status is RunStatus.QUEUED and run.attempt == 0]
        due = [each.next_attempt_at for each in deliveries if each.next_attempt_at is not None]
        pending = [each for each in self._state.approvals.values() if each.state is ApprovalState.PENDING]
        return Backlog(
            runs=Counter(run.status for run in runs),
            workflow_runs=Counter(run.status for run in workflow_runs),
            oldest_queued_at=min(fresh, default=None),
            pending_approvals=len(pending),
            open_deliveries=len(deliveries),
            oldest_delivery_at=min(due, default=None),
        )
