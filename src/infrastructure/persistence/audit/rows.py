"""Audit events to rows and back, and the statement that stores them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, UpdateBase

from domain.audit.event import AuditEvent
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Unit
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


def recorded_change(change: UpdateBase, values: Mapping[str, Any], audit: AuditEvent) -> Unit[bool]:
    """A unit that executes the change and stores its entry; False, and no entry, if the change
    touches no row."""

    def unit(connection: Connection) -> bool:
        if connection.execute(change, values).rowcount == 0:
            return False
        record(connection, audit)
        return True

    return unit


def audit_event_of(row: AnyRow) -> AuditEvent:
    return _fields.of_row(row)
