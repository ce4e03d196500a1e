"""Schedules to rows and back, and the move to the next time, within the transaction of what comes of a fire."""

from typing import cast

from sqlalchemy import Connection, bindparam, update

from domain.ids import AgentId, OrganizationId, RunId, ScheduleId, ThreadId
from domain.json_value import JsonObject
from domain.runs.run import MultitaskStrategy, Run
from domain.schedules.firing import Firing, fired_audit, schedule_moved
from domain.schedules.schedule import MissedFires, Schedule, ScheduleError
from domain.threads.message import UserContent
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.limits_json import limits_from_json, limits_to_json
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import schedule
from infrastructure.persistence.threads.message_rows import content_json, content_of
from infrastructure.persistence.webhooks.urls import sealed_url, webhook_of

_move = update(schedule).where(
    schedule.c.organization_id == bindparam("of_organization"),
    schedule.c.id == bindparam("this"),
    schedule.c.version == bindparam("seen"),
    schedule.c.next_fire_at == bindparam("due_at", type_=schedule.c.next_fire_at.type),
)


def begin_run(connection: Connection, firing: Firing, begun: Run) -> None:
    """Move the schedule on because of this run, which is stored in the same transaction. Raises CONFLICT
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
    """Move the schedule on to its next time, if it is where the firing saw it."""
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
    return {
        "id": new.id,
        "organization_id": new.organization_id,
        "created_at": new.created_at,
        "next_fire_at": new.next_fire_at,
        **changeable_row(new, box),
    }


def changeable_row(changed: Schedule, box: SecretBox) -> dict[str, object]:
    """The columns that people change; the URL of the webhook is encrypted."""
    webhook = changed.webhook
    return {
        "name": changed.name,
        "cron": changed.cron,
        "timezone": changed.timezone,
        "agent_id": changed.agent_id,
        "thread_id": changed.thread_id,
        "input": content_json(changed.input),
        "strategy": changed.strategy.value,
        "limits": limits_to_json(changed.limits),
        "model": changed.model,
        "tool_allowlist": None if changed.tool_allowlist is None else list(changed.tool_allowlist),
        "metadata": changed.metadata,
        "webhook": None if webhook is None else webhook.note.to_json(),
        "webhook_url": sealed_url(None if webhook is None else webhook.url, box),
        "missed": changed.missed.value,
        "enabled": changed.enabled,
        "version": changed.version,
        "updated_at": changed.updated_at,
    }


def schedule_of(row: AnyRow, box: SecretBox) -> Schedule:
    """From a row of `schedule`."""
    return Schedule(
        id=ScheduleId(row.id),
        organization_id=OrganizationId(row.organization_id),
        name=row.name,
        cron=row.cron,
        timezone=row.timezone,
        agent_id=AgentId(row.agent_id),
        thread_id=None if row.thread_id is None else ThreadId(row.thread_id),
        input=cast("tuple[UserContent, ...]", content_of(row.input)),
        strategy=MultitaskStrategy(row.strategy),
        limits=limits_from_json(row.limits),
        model=row.model,
        tool_allowlist=None if row.tool_allowlist is None else tuple(cast("list[str]", row.tool_allowlist)),
        metadata=cast(JsonObject, row.metadata),
        webhook=None if row.webhook is None else webhook_of(cast(JsonObject, row.webhook), row.webhook_url, box),
        missed=MissedFires(row.missed),
        enabled=row.enabled,
        next_fire_at=row.next_fire_at,
        last_fired_at=row.last_fired_at,
        last_run_id=None if row.last_run_id is None else RunId(row.last_run_id),
        last_error=None
        if row.error_code is None
        else ScheduleError(code=row.error_code, detail=row.error_detail, at=row.error_at),
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
