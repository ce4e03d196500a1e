"""Tables of the audit trail."""

from sqlalchemy import Column, Index, Integer, Table, text

from infrastructure.persistence.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# Outlives everything it speaks of: no foreign keys.
audit_event = Table(
    "audit_event",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("action", PlainText, nullable=False),
    Column("actor", PlainText, nullable=False),
    Column("resource", PlainText, nullable=False),
    Column("at", Moment, nullable=False),
    Column("run_id", PlainText),
    Column("tool", PlainText),
    Column("server_id", PlainText),
    Column("duration_ms", Integer),
    Column("arguments_digest", PlainText),
    Column("details", JsonText, nullable=False),
    Index(None, "organization_id", "at", "id"),
    Index(
        "ix_audit_event_run_id",
        "run_id",
        sqlite_where=text("run_id IS NOT NULL"),
        postgresql_where=text("run_id IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)
