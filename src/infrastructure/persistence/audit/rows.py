"""Audit events to rows and back, and the statement that stores them."""

from sqlalchemy import Connection

from domain.audit.event import AuditEvent
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import audit_event

# Ids of audit events of repeatable steps are derived: an existing entry is the same entry.
_insert = Prepared(
    upsert(audit_event).inline().on_conflict_do_nothing(index_elements=["id"]),
    columns=[column.name for column in audit_event.columns],
    together=True,
)
_fields = row_fields(AuditEvent)


def record(connection: Connection, *events: AuditEvent) -> None:
    """Store entries in the transaction of their change."""
    if events:
        _insert.run(connection, *[_fields.write(event) for event in events])


def audit_event_of(row: AnyRow) -> AuditEvent:
    return _fields.of_row(row)
