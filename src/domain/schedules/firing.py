"""One fire of a schedule, and what the audit trail says of it."""

from dataclasses import dataclass
from datetime import datetime

from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict
from domain.ids import AuditEventId, ScheduleId, derived_id
from domain.runs.run import Run
from domain.schedules.schedule import Schedule, ScheduleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A fire that was due at `due_at`, of a schedule as it was read at `version`; with it the schedule moves on to
    `next_fire_at`. It counts only if both are still so when it is stored, which makes it happen once."""

    schedule_id: ScheduleId
    version: int
    due_at: datetime
    next_fire_at: datetime | None


def schedule_moved(schedule_id: ScheduleId) -> ServiceError:
    """Somebody else saw to the fire, or changed the schedule."""
    return conflict("schedule_moved", f"The schedule {schedule_id} has moved on.", schedule_id=schedule_id)


def fired_audit(run: Run, firing: Firing) -> AuditEvent:
    """The fire began this run."""
    return AuditEvent(
        id=AuditEventId(derived_id("aud", run.id, AuditAction.SCHEDULE_FIRED.value)),
        organization_id=run.organization_id,
        action=AuditAction.SCHEDULE_FIRED,
        actor=run.requested_by or "system",
        resource=firing.schedule_id,
        at=run.created_at,
        run_id=run.id,
        details={"due_at": firing.due_at.isoformat(), "agent_id": run.agent_id, "thread_id": run.thread_id},
    )


def not_fired_audit(schedule: Schedule, firing: Firing, error: ScheduleError) -> AuditEvent:
    """The fire began no run; `details` say why."""
    return AuditEvent(
        id=AuditEventId(derived_id("aud", schedule.id, firing.version, firing.due_at.isoformat())),
        organization_id=schedule.organization_id,
        action=AuditAction.SCHEDULE_NOT_FIRED,
        actor=schedule.actor,
        resource=schedule.id,
        at=error.at,
        details={"due_at": firing.due_at.isoformat(), "agent_id": schedule.agent_id, "error": error.code},
    )
