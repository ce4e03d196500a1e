"""Table of schedules."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
)

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata

# Agent and thread are stored as given, and may be deleted. A trigger advances the schedule before
# it stores its run, so that a concurrent one waits only for this row; the reference is checked at
# the end. `webhook_url` is encrypted.
schedule = Table(
    "schedule",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("cron", PlainText, nullable=False),
    Column("timezone", PlainText, nullable=False),
    Column("agent_id", PlainText, nullable=False),
    Column("thread_id", PlainText),
    Column("input", JsonText, nullable=False),
    Column("strategy", PlainText, nullable=False),
    Column("limits", JsonText, nullable=False),
    Column("lane", PlainText),
    Column("model", PlainText),
    Column("model_settings", JsonText, nullable=False, server_default="{}"),
    Column("output_schema", JsonText),
    Column("tool_allowlist", JsonText),
    Column("metadata", JsonText, nullable=False),
    Column("webhook", JsonText),
    Column("webhook_url", LargeBinary),
    Column("missed", PlainText, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("next_fire_at", Moment),
    Column("last_fired_at", Moment),
    Column("last_run_id", PlainText, ForeignKey("run.id", ondelete="SET NULL", deferrable=True, initially="DEFERRED")),
    Column("error_code", PlainText),
    Column("error_detail", PlainText),
    Column("error_at", Moment),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("person_id", PlainText),
    UniqueConstraint("organization_id", "name"),
    CheckConstraint("enabled OR next_fire_at IS NULL", name="paused"),
    Index(None, "organization_id", "created_at", "id"),
    Index(None, "next_fire_at", "id"),
    Index(None, "last_run_id"),
)
