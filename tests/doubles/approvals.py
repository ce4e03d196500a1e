"""Approvals as the API sees them, and timers, in memory."""

from datetime import datetime

from application.approvals.ports import ApprovalFilter, ConsentChange
from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.timer import Timer, TimerKind
from domain.errors import existing
from domain.ids import ApprovalId, OrganizationId, RunId, TimerId
from domain.teams import Teams
from tests.doubles.owners import seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryApprovalStore:
    """The `ApprovalStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def get(
        self, organization_id: OrganizationId, approval_id: ApprovalId, *, teams: Teams = None
    ) -> Approval | None:
        """The approval, or None."""
        approval = self._state.approvals.get(approval_id)
        if approval is None or approval.organization_id != organization_id:
            return None
        return next(iter(seen(self._state, teams, [approval], lambda each: each.id)), None)

    async def page(
        self, organization_id: OrganizationId, wanted: ApprovalFilter, request: PageRequest
    ) -> Page[Approval]:
        """Approvals, newest first."""
        found = [
            approval
            for approval in self._state.approvals.values()
            if approval.organization_id == organization_id
            and wanted.state in (None, approval.state)
            and wanted.run_id in (None, approval.run_id)
        ]
        found = seen(self._state, request.teams, found, lambda approval: approval.id)
        return newest_first(found, lambda approval: by_time(approval.created_at, approval.id), request)

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Approval, ...]:
        """All approvals of a run, oldest first."""
        found = [
            approval
            for approval in self._state.approvals.values()
            if approval.organization_id == organization_id and approval.run_id == run_id
        ]
        return tuple(sorted(found, key=lambda approval: (approval.created_at, approval.id)))

    async def consent(
        self, organization_id: OrganizationId, approval_id: ApprovalId, decide: ConsentChange
    ) -> Approval:
        """Store what `decide` adds."""
        stored = existing(await self.get(organization_id, approval_id), "approval", approval_id)
        decided = decide(stored)
        if decided is None:
            return stored
        self._state.approvals[approval_id] = decided[0]
        self._state.record(decided[1])
        return decided[0]


class InMemoryTimerStore:
    """The `TimerStore` port: every pending approval has its timer, and nothing else has."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def next_due(self) -> datetime | None:
        """When the earliest timer is due."""
        return min((timer.due_at for timer in self._timers()), default=None)

    async def due(self, *, at: datetime, limit: int, after: Timer | None = None) -> tuple[Timer, ...]:
        """Timers due at `at` or before, the earliest first."""
        found = sorted((timer for timer in self._timers() if timer.due_at <= at), key=_place)
        return tuple(timer for timer in found if after is None or _place(timer) > _place(after))[:limit]

    async def remove(self, timer_id: TimerId) -> None:
        """Nothing to forget: a timer is there while its approval is pending."""

    def _timers(self) -> list[Timer]:
        return [
            Timer(
                id=TimerId(f"tmr_{approval.id}"),
                organization_id=approval.organization_id,
                kind=TimerKind.APPROVAL_EXPIRY,
                subject_id=approval.id,
                due_at=approval.expires_at,
            )
            for approval in self._state.approvals.values()
            if approval.state is ApprovalState.PENDING
        ]


def _place(timer: Timer) -> tuple[datetime, TimerId]:
    return timer.due_at, timer.id
