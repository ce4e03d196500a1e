"""Tables of runs: state, request, events, the tool ledger, idempotency keys."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    false,
)

from infrastructure.persistence.columns.column_types import JsonText, Moment, NanoUsd, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# The state of a run: small, because every step rewrites it. The request is in run_request.
run = Table(
    "run",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("thread_id", PlainText, ForeignKey("thread.id", ondelete="CASCADE"), nullable=False),
    Column("agent_id", PlainText, nullable=False),
    Column("agent_version", Integer, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lapses", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("cancel_requested_by", PlainText),
    Column("rolled_back", Boolean, nullable=False),
    Column("worker_id", PlainText),
    Column("lease_expires_at", Moment),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost_nano_usd", NanoUsd, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("tool_calls", Integer, nullable=False),
    Column("active_s", Double, nullable=False),
    Column("pending", JsonText),
    Column("output", PlainText),
    Column("error_code", PlainText),
    Column("error_detail", PlainText),
    Column("incomplete_reason", PlainText),
    Column("requested_by", PlainText),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("finished_at", Moment),
    Column("provider_error", JsonText),
    Column("reasoning_tokens", BigInteger, nullable=False, server_default="0"),
    Column("usage_estimated", Boolean, nullable=False, server_default=false()),
    Column("output_json", JsonText),
    Column("lane", PlainText, nullable=False, server_default="normal"),
    Column("has_push_configs", Boolean, nullable=False, server_default=false()),
    Column("team", PlainText),
    CheckConstraint(
        "status IN ('queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled',"
        " 'halted')",
        name="status",
    ),
    Index(None, "organization_id", "created_at", "id"),
    Index(None, "thread_id", "created_at", "id"),
    Index(None, "agent_id", "created_at", "id"),
    partial_index(
        "ix_run_unfinished",
        "status",
        "thread_id",
        "attempt",
        "created_at",
        "id",
        where="status IN ('queued', 'in_progress', 'requires_action')",
    ),
    partial_index(
        "ix_run_not_completed",
        "organization_id",
        "status",
        "created_at",
        "id",
        where="status NOT IN ('queued', 'in_progress', 'requires_action', 'completed')",
    ),
    partial_index("ix_run_error", "organization_id", "error_code", "created_at", "id", where="error_code IS NOT NULL"),
    Index(None, "organization_id", "requested_by", "created_at", "id"),
    partial_index("ix_run_queued", "organization_id", "agent_id", "lane", "created_at", where="status = 'queued'"),
    partial_index(
        "uq_run_active_thread",
        "thread_id",
        unique=True,
        where="status IN ('in_progress', 'requires_action')",
    ),
)

# The request of a run; never rewritten. `overview` is added once, at the run's first model request.
# `webhook_url` is encrypted; `webhook` has the public rest.
run_request = Table(
    "run_request",
    metadata,
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("input", JsonText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("limits", JsonText, nullable=False),
    Column("tool_allowlist", JsonText),
    Column("metadata", JsonText, nullable=False),
    Column("overview", PlainText),
    Column("webhook", JsonText),
    Column("webhook_url", LargeBinary),
    Column("wired", JsonText),
    Column("model_settings", JsonText),
    Column("retry_of", PlainText),
    Column("output_schema", JsonText),
    Column("client_tools", JsonText),
    Column("instructions", PlainText),
    Column("history_key", PlainText),
    Column("client_request", JsonText),
    partial_index("ix_run_request_history_key", "organization_id", "history_key", where="history_key IS NOT NULL"),
)

# An event about a message of the same step has its `message_id`; `data` is then the remaining
# content, or NULL.
run_event = Table(
    "run_event",
    metadata,
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("organization_id", PlainText, nullable=False),
    Column("type", PlainText, nullable=False),
    Column("at", Moment, nullable=False),
    Column("data", JsonText),
    Column("message_id", PlainText),
    sqlite_with_rowid=False,
)

# `result` is stored here until a message (`message_id`) contains it. `elicitation` is the open
# question; `input`, encrypted, is the state that the server gets back with the answers. `approval`
# is the required approval, if any.
tool_call = Table(
    "tool_call",
    metadata,
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("call", JsonText, nullable=False),
    Column("type", PlainText),
    Column("server_id", PlainText),
    Column("repeatable", Boolean, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("recorded_at", Moment, nullable=False),
    Column("outcome", PlainText),
    Column("error_code", PlainText),
    Column("result", JsonText),
    Column("duration_ms", Integer),
    Column("settled_at", Moment),
    Column("message_id", PlainText),
    Column("elicitation", JsonText),
    Column("input", LargeBinary),
    Column("approval", JsonText),
)

# The key is written before its run, so the reference is checked at the end of the transaction.
idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("key", PlainText, primary_key=True),
    Column("body_digest", PlainText, nullable=False),
    Column(
        "run_id",
        PlainText,
        ForeignKey("run.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        nullable=False,
        index=True,
    ),
    Column("created_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at"),
)
