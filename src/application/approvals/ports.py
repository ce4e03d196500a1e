"""Ports of the approvals slice: stored approvals and timers.

Approvals are written with the steps of their runs (`Step.approvals`, `Step.outcomes`), with their
timers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.approvals.timer import Timer
from domain.audit.event import AuditEvent
from domain.identity.api_key import Principal
from domain.ids import ApprovalId, GatewaySessionId, OrganizationId, RunId, TimerId
from domain.teams import Teams

TIMERS_TOPIC = "timers"
"""Signalled when a timer was added."""


def session_approvals_topic(session_id: GatewaySessionId) -> str:
    """Signalled when an approval of the gateway session has ended."""
    return f"gateway-session.approvals:{session_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilter:
    """Conditions that must all hold; None does not restrict."""

    state: ApprovalState | None = None
    run_id: RunId | None = None


ConsentChange = Callable[[Approval], tuple[Approval, AuditEvent] | None]
"""Decides over the stored approval, with its row locked; None for no change."""


class ApprovalStore(Protocol):
    async def get(
        self, organization_id: OrganizationId, approval_id: ApprovalId, *, teams: Teams = None
    ) -> Approval | None:
        """The approval, or None; of runs and sessions that teams own, only of those of `teams`."""

    async def page(
        self, organization_id: OrganizationId, wanted: ApprovalFilter, request: PageRequest
    ) -> Page[Approval]:
        """Approvals, newest first."""

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Approval, ...]:
        """All approvals of a run, oldest first."""

    async def consent(
        self, organization_id: OrganizationId, approval_id: ApprovalId, decide: ConsentChange
    ) -> Approval:
        """Store the consents that `decide` adds. Raises NOT_FOUND `approval_not_found`, and what
        `decide` raises."""


class ApprovalDecider(Protocol):
    """Decides and expires the approvals of runs or of gateway sessions."""

    async def execute(self, principal: Principal, approval: Approval, decision: CallDecision) -> None:
        """Decide a pending approval. Raises CONFLICT, FORBIDDEN, INVALID; then no decision was
        taken."""

    async def expire(self, approval: Approval) -> bool:
        """Deny the call because the approval expired. False if the approval had ended before."""


class TimerStore(Protocol):
    """Timers of all organizations."""

    async def next_due(self) -> datetime | None:
        """When the earliest timer is due; None without any."""

    async def due(self, *, at: datetime, limit: int, after: Timer | None = None) -> tuple[Timer, ...]:
        """Timers due at `at` or before, earliest first, from behind `after`, which may be
        removed."""

    async def remove(self, timer_id: TimerId) -> None:
        """Remove a timer without a subject."""
