"""Audit events to rows and back, and the statement that stores them."""

from typing import cast

from sqlalchemy import Connection

from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId, McpServerId, OrganizationId, RunId
from domain.json_value import JsonObject
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import audit_event

# Ids of audit events of repeatable steps are derived: an entry that is there already is the same entry.
_insert = Prepared(
    upsert(audit_event).inline().on_conflict_do_nothing(index_elements=["id"]),
    columns=[column.name for column in audit_event.columns],
)


def record(connection: Connection, *events: AuditEvent) -> None:
    """Store entries within the transaction of what they describe."""
    if events:
        _insert.run_many(connection, [_row(event) for event in events])


def audit_event_of(row: AnyRow) -> AuditEvent:
    """From a row of `audit_event`."""
    return AuditEvent(
        id=AuditEventId(row.id),
        organization_id=OrganizationId(row.organization_id),
        action=AuditAction(row.action),
        actor=row.actor,
        resource=row.resource,
        at=row.at,
        run_id=None if row.run_id is None else RunId(row.run_id),
        tool=row.tool,
        server_id=None if row.server_id is None else McpServerId(row.server_id),
        duration_ms=row.duration_ms,
        arguments_digest=row.arguments_digest,
        details=cast(JsonObject, row.details),
    )


def _row(event: AuditEvent) -> dict[str, object]:
    return {
        "id": event.id,
        "organization_id": event.organization_id,
        "action": str(event.action),
        "actor": event.actor,
        "resource": event.resource,
        "at": event.at,
        "run_id": event.run_id,
        "tool": event.tool,
        "server_id": event.server_id,
        "duration_ms": event.duration_ms,
        "arguments_digest": event.arguments_digest,
        "details": event.details,
    }
