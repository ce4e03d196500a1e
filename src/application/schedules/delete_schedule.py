"""DeleteSchedule: delete a schedule."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.schedules.ports import ScheduleStore
from application.schedules.schedule_lookup import existing_schedule
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteScheduleCommand:
    """`schedule` is an id or a name."""

    principal: Principal
    schedule: str


class DeleteSchedule:
    """Rules:
    - Admins delete schedules; runs that they started continue.
    - Audited as `schedule.deleted`.

    Raises: ServiceError role_insufficient, schedule_not_found.
    """

    def __init__(self, *, schedules: ScheduleStore, clock: Clock, ids: IdSource) -> None:
        self._schedules = schedules
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteScheduleCommand) -> None:
        principal = command.principal
        principal.require(Permission.SCHEDULES_MANAGE)
        schedule = await existing_schedule(self._schedules, principal, command.schedule)
        audit = audit_entry(
            principal,
            AuditAction.SCHEDULE_DELETED,
            schedule.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": schedule.name, "version": schedule.version},
        )
        if not await self._schedules.delete(principal.organization_id, schedule.id, audit):
            raise not_found("schedule", command.schedule)
