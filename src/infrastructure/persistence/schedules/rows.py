"""Schedules to rows and back, and advancing a schedule in the transaction of its trigger."""

from sqlalchemy import Connection, bindparam, update

from domain.ids import OrganizationId
from domain.runs.run import Run
from domain.schedules.firing import Firing, fired_audit, schedule_moved
from domain.schedules.schedule import Schedule, ScheduleError
from domain.threads.message import UserContent
from domain.threads.message_json import content_from_json, content_to_json
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import schedule
from infrastructure.persistence.webhooks.urls import sealed_url, webhook_of

_FIXED = ("id", "organization_id", "created_at", "next_fire_at")
_CODECS = {UserContent: (content_to_json, content_from_json)}
_fixed = row_fields(Schedule, only=_FIXED)
_changeable = row_fields(
    Schedule, without=(*_FIXED, "webhook", "last_fired_at", "last_run_id", "last_error"), codecs=_CODECS
)
_columns = row_fields(Schedule, without=("webhook", "last_error"), codecs=_CODECS)
_error = row_fields(ScheduleError, renamed={"code": "error_code", "detail": "error_detail", "at": "error_at"})

_move = update(schedule).where(
    schedule.c.organization_id == bindparam("of_organization"),
    schedule.c.id == bindparam("this"),
    schedule.c.version == bindparam("seen"),
    schedule.c.next_fire_at == bindparam("due_at", type_=schedule.c.next_fire_at.type),
)


def begin_run(connection: Connection, firing: Firing, begun: Run) -> None:
    """Advance the schedule because of this run, stored in the same transaction. Raises CONFLICT
    `schedule_moved`."""
    told: dict[str, object] = {
        "last_fired_at": begun.created_at,
        "last_run_id": begun.id,
        "error_code": None,
        "error_detail": None,
        "error_at": None,
    }
    if not move(connection, begun.organization_id, firing, told):
        raise schedule_moved(firing.schedule_id)
    record(connection, fired_audit(begun, firing))


def move(connection: Connection, organization_id: OrganizationId, firing: Firing, told: dict[str, object]) -> bool:
    """Advance the schedule to its next time, unless it has changed since the firing was read."""
    wanted = {
        "of_organization": organization_id,
        "this": firing.schedule_id,
        "seen": firing.version,
        "due_at": firing.due_at,
    }
    moved = connection.execute(_move.values(next_fire_at=firing.next_fire_at, **told), wanted)
    return moved.rowcount == 1


def schedule_row(new: Schedule, box: SecretBox) -> dict[str, object]:
    """Columns of a schedule that is stored for the first time."""
    return {**_fixed.write(new), **changeable_row(new, box)}


def changeable_row(changed: Schedule, box: SecretBox) -> dict[str, object]:
    """The columns that people change; the URL of the webhook is encrypted."""
    webhook = changed.webhook
    return {
        **_changeable.write(changed),
        "webhook": None if webhook is None else webhook.note.to_json(),
        "webhook_url": sealed_url(None if webhook is None else webhook.url, box),
    }


def schedule_of(row: AnyRow, box: SecretBox) -> Schedule:
    return _columns.of_row(
        row,
        webhook=None if row.webhook is None else webhook_of(row.webhook, row.webhook_url, box),
        last_error=None if row.error_code is None else _error.of_row(row),
    )
