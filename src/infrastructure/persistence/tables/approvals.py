"""Tables of approvals and timers."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# An approval of a run's call or of a gateway session's: exactly one of the two is set.
approval = Table(
    "approval",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE")),
    Column("gateway_session_id", PlainText, ForeignKey("gateway_session.id", ondelete="CASCADE"), index=True),
    Column("tool_call_id", PlainText, nullable=False),
    Column("tool", PlainText, nullable=False),
    Column("server_id", PlainText),
    Column("arguments", JsonText, nullable=False),
    Column("digest", PlainText, nullable=False),
    Column("agent_id", PlainText, nullable=False),
    Column("agent_version", Integer, nullable=False),
    Column("requested_by", PlainText),
    Column("allow_self_approval", Boolean, nullable=False),
    Column("cause", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("decided_at", Moment),
    Column("decided_by", PlainText),
    Column("reason", PlainText),
    Column("edited_arguments", JsonText),
    Column("server", JsonText),
    Column("approvers", JsonText),
    Column("approvals_needed", Integer),
    Column("consents", JsonText),
    Index(None, "organization_id", "created_at", "id"),
    Index(None, "run_id"),
    partial_index(
        "ix_approval_pending",
        "organization_id",
        "created_at",
        "id",
        where="state = 'pending'",
    ),
)

# The kind defines the meaning of `subject_id`.
timer = Table(
    "timer",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("subject_id", PlainText, nullable=False),
    Column("due_at", Moment, nullable=False),
    Index(None, "due_at", "id"),
    Index(None, "subject_id"),
)
