"""Ports of the approvals slice: stored approvals, and the timers of everything that happens at a moment.

Approvals are written with the steps of their runs (`Step.approvals`, `Step.outcomes`), together with their timers.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.approvals.timer import Timer
from domain.identity.api_key import Principal
from domain.ids import ApprovalId, GatewaySessionId, OrganizationId, RunId, TimerId

TIMERS_TOPIC = "timers"
"""Woken when a timer was added."""


def session_approvals_topic(session_id: GatewaySessionId) -> str:
    """Woken when an approval of the gateway session has ended."""
    return f"gateway-session.approvals:{session_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilter:
    """Conditions that all must hold; None does not restrict."""

    state: ApprovalState | None = None
    run_id: RunId | None = None


class ApprovalStore(Protocol):
    """Approvals as the API sees them."""

    async def get(self, organization_id: OrganizationId, approval_id: ApprovalId) -> Approval | None:
        """The approval, or None."""
        ...

    async def page(
        self, organization_id: OrganizationId, wanted: ApprovalFilter, request: PageRequest
    ) -> Page[Approval]:
        """Approvals, newest first."""
        ...

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Approval, ...]:
        """All approvals of a run, oldest first."""
        ...


class ApprovalDecider(Protocol):
    """Decides and expires the approvals of one kind of caller: runs, or gateway sessions."""

    async def execute(self, principal: Principal, approval: Approval, decision: CallDecision) -> None:
        """Decide a pending approval. Raises CONFLICT, FORBIDDEN, INVALID; then nothing was decided."""
        ...

    async def expire(self, approval: Approval) -> bool:
        """Deny the call because its time is over. False if the approval had ended before."""
        ...


class TimerStore(Protocol):
    """Timers of all organizations."""

    async def next_due(self) -> datetime | None:
        """When the earliest timer is due; None without any."""
        ...

    async def due(self, *, at: datetime, limit: int, after: Timer | None = None) -> tuple[Timer, ...]:
        """Timers due at `at` or before, the earliest first; those that come after `after`, which may be gone."""
        ...

    async def remove(self, timer_id: TimerId) -> None:
        """Forget a timer whose subject is no more."""
        ...
