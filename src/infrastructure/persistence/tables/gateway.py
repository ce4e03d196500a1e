"""Tables of the gateway: sessions, client settings, and the ledger of calls."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import JsonText, Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# `token_hash` is NULL for the implicit session of an API key and an agent. A session with a
# `run_id` or `workflow_run_id` ends with that run.
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
    Column("client_id", PlainText),
    Column("client_name", PlainText),
    Column("token_expires_at", Moment),
    Index(None, "organization_id", "created_at", "id"),
)

# What people granted to OAuth clients: one row for each session with a `client_id`. Codes and
# tokens are hashes.
gateway_grant = Table(
    "gateway_grant",
    metadata,
    Column("session_id", PlainText, ForeignKey("gateway_session.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("client_hash", PlainText, nullable=False, index=True),
    Column("redirect_uri", PlainText, nullable=False),
    Column("resource", PlainText, nullable=False),
    Column("challenge", PlainText, nullable=False),
    Column("code_hash", PlainText, nullable=False, unique=True),
    Column("code_expires_at", Moment, nullable=False),
    Column("redeemed_at", Moment),
    Column("family_hash", PlainText, unique=True),
    Column("refresh_hash", PlainText),
)

# Settings of clients with older MCP versions after their handshake; an ended client is refused.
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

# Ids sort by time, so the calls of a session are adjacent and in order.
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

# Notes between processes about running calls; `sealed` and `answer` are encrypted.
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
