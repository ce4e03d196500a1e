"""Tables of the gateway: sessions, what their clients asked for, and the ledger of their calls."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# `token_hash` is NULL for the session that an API key itself has with an agent. One with a `run_id` or a
# `workflow_run_id` ends with that run.
gateway_session = Table(
    "gateway_session",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("agent_id", PlainText, nullable=False),
    Column("thread_id", PlainText, ForeignKey("thread.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), index=True),
    Column("workflow_run_id", PlainText, ForeignKey("workflow_run.id", ondelete="CASCADE"), index=True),
    Column("node_ids", JsonText),
    Column("token_hash", PlainText, unique=True),
    Column("names", PlainText, nullable=False),
    Column("created_by", PlainText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("revoked_at", Moment),
    Index(None, "organization_id", "created_at", "id"),
)

# Of the older generation, once it has asked for something after its handshake; one that has ended is refused.
gateway_client = Table(
    "gateway_client",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("session_id", PlainText, ForeignKey("gateway_session.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("log_level", PlainText),
    Column("subscriptions", JsonText, nullable=False),
    Column("ended_at", Moment),
)

# Its ids sort by time, so the calls of a session lie together, in order.
gateway_call = Table(
    "gateway_call",
    metadata,
    Column("session_id", PlainText, ForeignKey("gateway_session.id", ondelete="CASCADE"), primary_key=True),
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("type", PlainText, nullable=False),
    Column("server_id", PlainText),
    Column("params", JsonText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("recorded_at", Moment, nullable=False),
    Column("due_at", Moment),
    Column("approval_id", PlainText),
    Column("outcome", PlainText),
    Column("error_code", PlainText),
    Column("result", JsonText),
    Column("duration_ms", Integer),
    Column("settled_at", Moment),
    partial_index(
        "ix_gateway_call_open",
        "session_id",
        "name",
        where="state <> 'settled'",
    ),
    sqlite_with_rowid=False,
)

# What processes leave for each other about calls under way; `sealed` and `answer` are encrypted.
gateway_note = Table(
    "gateway_note",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("session_id", PlainText, ForeignKey("gateway_session.id", ondelete="CASCADE"), nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("call_id", PlainText),
    Column("sealed", LargeBinary),
    Column("answer", LargeBinary),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
    Index(None, "session_id", "call_id", "id"),
)
