"""Timers: what has to happen at a moment, kept in storage so that it happens whatever became of the process."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import OrganizationId, TimerId


class TimerKind(StrEnum):
    """What a timer is about. Of `approval_expiry` the subject is an approval."""

    APPROVAL_EXPIRY = "approval_expiry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """Due at a moment; removed in the transaction that does what it is about, or makes it needless."""

    id: TimerId
    organization_id: OrganizationId
    kind: TimerKind
    subject_id: str
    due_at: datetime
