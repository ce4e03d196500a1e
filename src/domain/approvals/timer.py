"""Timers: stored events that any process executes when they are due."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import OrganizationId, TimerId


class TimerKind(StrEnum):
    """The subject of `approval_expiry` is an approval."""

    APPROVAL_EXPIRY = "approval_expiry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A stored event at `due_at`. The transaction that handles it, or makes it unnecessary, removes
    it."""

    id: TimerId
    organization_id: OrganizationId
    kind: TimerKind
    subject_id: str
    due_at: datetime
