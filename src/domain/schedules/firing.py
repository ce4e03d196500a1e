"""One trigger of a schedule, and its audit entries."""

from dataclasses import dataclass
from datetime import datetime

from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict
from domain.ids import AuditEventId, ScheduleId, derived_id
from domain.runs.run import Run
from domain.schedules.schedule import Schedule, ScheduleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A trigger that was due at `due_at`, of a schedule that was read at `version`.

    Storing it moves the schedule to `next_fire_at`. It is stored only if version and due time are
    unchanged, so each trigger fires once.
    """

    schedule_id: ScheduleId
    version: int
    due_at: datetime
    next_fire_at: datetime | None


def schedule_moved(schedule_id: ScheduleId) -> ServiceError:
    """Another process handled the trigger, or the schedule was changed."""
    return conflict("schedule_moved", f"The schedule {schedule_id} has moved on.", schedule_id=schedule_id)


def fired_audit(run: Run, firing: Firing) -> AuditEvent:
    """The audit entry for a trigger that started a run."""
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
    """The audit entry for a trigger that started no run; `details` hold the reason."""
    return AuditEvent(
        id=AuditEventId(derived_id("aud", schedule.id, firing.version, firing.due_at.isoformat())),
        organization_id=schedule.organization_id,
        action=AuditAction.SCHEDULE_NOT_FIRED,
        actor=schedule.actor,
        resource=schedule.id,
        at=error.at,
        details={"due_at": firing.due_at.isoformat(), "agent_id": schedule.agent_id, "error": error.code},
    )
