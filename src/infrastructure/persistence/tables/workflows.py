"""Tables of workflows, their versions and their runs."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# The name of an active workflow is unique; a deleted one stays for its runs. `secrets` are the
# names used by the newest version, `team` is that of the newest version.
workflow = Table(
    "workflow",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("secrets", JsonText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    Column("team", PlainText),
    Index(None, "organization_id", "created_at", "id"),
    partial_index(
        "uq_workflow_name_in_use",
        "organization_id",
        "name",
        unique=True,
        where="deleted_at IS NULL",
    ),
)

workflow_version = Table(
    "workflow_version",
    metadata,
    Column("workflow_id", PlainText, ForeignKey("workflow.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("graph", JsonText, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("source_text", PlainText),
    Column("team", PlainText),
)

# `attempt` counts workers; `epoch` is the fence; a run in progress has a lease, a waiting one
# perhaps a wake-up time. An expired idempotency key is removed.
workflow_run = Table(
    "workflow_run",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("workflow_id", PlainText, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("workflow_version", Integer, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("input", JsonText),
    Column("output", JsonText),
    Column("error", JsonText),
    Column("failed_node", PlainText),
    Column("requested_by", PlainText, nullable=False),
    Column("cancel_requested_by", PlainText),
    Column("attempt", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("worker_id", PlainText),
    Column("lease_expires_at", Moment),
    Column("wake_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("finished_at", Moment),
    Column("idempotency_key", PlainText),
    Column("body_digest", PlainText),
    Column("team", PlainText),
    Index(None, "organization_id", "created_at", "id"),
    partial_index("ix_workflow_run_team", "organization_id", "team", where="team IS NOT NULL"),
    Index(None, "workflow_id"),
    partial_index(
        "uq_workflow_run_idempotency_key",
        "organization_id",
        "idempotency_key",
        unique=True,
        where="idempotency_key IS NOT NULL",
    ),
    partial_index(
        "ix_workflow_run_unfinished",
        "created_at",
        "id",
        where="finished_at IS NULL",
    ),
)

# A node `waits_for` an agent's run that was suspended when its newest event had the number
# `waits_seq`.
workflow_node_run = Table(
    "workflow_node_run",
    metadata,
    Column("workflow_run_id", PlainText, ForeignKey("workflow_run.id", ondelete="CASCADE"), primary_key=True),
    Column("node_id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("state", JsonText, nullable=False),
    Column("waits_for", PlainText),
    Column("waits_seq", Integer),
    partial_index(
        "ix_workflow_node_run_waits_for",
        "waits_for",
        where="waits_for IS NOT NULL",
    ),
    sqlite_with_rowid=False,
)

# The tools of an unfinished run; `sealed` is encrypted.
workflow_tool = Table(
    "workflow_tool",
    metadata,
    Column("workflow_run_id", PlainText, ForeignKey("workflow_run.id", ondelete="CASCADE"), primary_key=True),
    Column("node_id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("registered_at", Moment, nullable=False),
    Column("bound", LargeBinary),
    Column("expires_at", Moment),
    sqlite_with_rowid=False,
)

workflow_event = Table(
    "workflow_event",
    metadata,
    Column("workflow_run_id", PlainText, ForeignKey("workflow_run.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("organization_id", PlainText, nullable=False),
    Column("type", PlainText, nullable=False),
    Column("at", Moment, nullable=False),
    Column("data", JsonText, nullable=False),
    sqlite_with_rowid=False,
)
