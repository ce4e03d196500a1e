"""The schema: what is stored, for SQLite and PostgreSQL alike. Migrations under migrations/ build exactly this.

Every table is scoped by organization_id. Foreign keys exist where deleting the parent must take the child along.
What each step of a run writes to (message, run_event, tool_call, audit_event) has as few indices as its queries allow,
and where rows are small no tree but its primary key's (WITHOUT ROWID): on SQLite every tree touched is a page written.
"""

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
    MetaData,
    Table,
    UniqueConstraint,
    text,
)

from infrastructure.persistence.column_types import JsonText, Moment, NanoUsd, PlainText

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

organization = Table(
    "organization",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("name", PlainText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("mcp_enabled", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("role", PlainText, nullable=False),
    Column("platform", Boolean, nullable=False),
    Column("token_hash", PlainText, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("revoked_at", Moment),
    Index(None, "organization_id", "created_at", "id"),
)

# An agent in use has a name nobody else has; a deleted one stays for the runs that name it.
agent = Table(
    "agent",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("name", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    Index(None, "organization_id", "created_at", "id"),
    Index(
        "uq_agent_name_in_use",
        "organization_id",
        "name",
        unique=True,
        sqlite_where=text("deleted_at IS NULL"),
        postgresql_where=text("deleted_at IS NULL"),
    ),
)

agent_version = Table(
    "agent_version",
    metadata,
    Column("agent_id", PlainText, ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("config", JsonText, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

thread = Table(
    "thread",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at", "id"),
)

# `position` counts from 1 in each thread, which only one hand at a time writes to: the holder of the lease on its active
# run, or of the thread's lock.
message = Table(
    "message",
    metadata,
    Column("thread_id", PlainText, ForeignKey("thread.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("id", PlainText, nullable=False),
    Column("organization_id", PlainText, nullable=False),
    Column("run_id", PlainText),
    Column("role", PlainText, nullable=False),
    Column("content", JsonText, nullable=False),
    Column("superseded", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("run_id", "id"),
)

# The state of a run: small, because every step rewrites it. What was asked for stands in run_request.
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
    CheckConstraint(
        "status IN ('queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled',"
        " 'halted')",
        name="status",
    ),
    Index(None, "organization_id", "created_at", "id"),
    Index(None, "thread_id", "created_at", "id"),
    Index(None, "agent_id", "created_at", "id"),
    Index(
        "ix_run_unfinished",
        "status",
        "thread_id",
        "attempt",
        "created_at",
        "id",
        sqlite_where=text("status IN ('queued', 'in_progress', 'requires_action')"),
        postgresql_where=text("status IN ('queued', 'in_progress', 'requires_action')"),
    ),
    Index(
        "uq_run_active_thread",
        "thread_id",
        unique=True,
        sqlite_where=text("status IN ('in_progress', 'requires_action')"),
        postgresql_where=text("status IN ('in_progress', 'requires_action')"),
    ),
)

# What a run was asked for; never rewritten. `overview` is added once, when the run first composes its request.
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
)

# An event about a message stored in the same step names it by `message_id`; then `data` is NULL.
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

# `result` holds what a call answered until a message (`message_id`) does. `elicitation` is the question it waits for;
# `input`, encrypted, what its server wants back with the answers.
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
)

# The key is taken before its run is written, so the reference is checked at the end of the transaction.
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

# `value` is encrypted. What refers to a secret by its name does so in its own configuration.
secret = Table(
    "secret",
    metadata,
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), primary_key=True),
    Column("name", PlainText, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "organization_id", "created_at", "name"),
)

# `secrets` is the encrypted JSON of env and headers; `config` is everything else, with the names of the secrets that
# those refer to.
mcp_server = Table(
    "mcp_server",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("slug", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("config", JsonText, nullable=False),
    Column("secrets", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    # What is installed: version, location and time; null while nothing is.
    Column("installed_version", PlainText),
    Column("installed_location", PlainText),
    Column("installed_at", Moment),
    UniqueConstraint("organization_id", "slug"),
    Index(None, "organization_id", "created_at", "id"),
)

# The newest catalog of a server without its tools, which stand in mcp_tool_definition. `revision` counts its changes.
mcp_server_state = Table(
    "mcp_server_state",
    metadata,
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("server_version", Integer, nullable=False),
    Column("description", JsonText, nullable=False),
    Column("taken_at", Moment, nullable=False),
    Column("revision", Integer, nullable=False),
)

# `standing` is null for an approved tool. `new` ones were never approved, of `changed` ones `approved_definition` was, and
# `dormant` ones are approved but not listed at present.
mcp_tool_definition = Table(
    "mcp_tool_definition",
    metadata,
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("organization_id", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("definition", JsonText, nullable=False),
    Column("standing", PlainText),
    Column("approved_definition", JsonText),
    Index(None, "server_id", "name"),
)

# Tokens for one MCP server from one authorization server; `sealed` is encrypted.
oauth_grant = Table(
    "oauth_grant",
    metadata,
    Column("organization_id", PlainText, primary_key=True),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), primary_key=True),
    Column("issuer", PlainText, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "server_id"),
)

# A person who was sent to an authorization server and is expected back; `sealed` is encrypted.
oauth_authorization = Table(
    "oauth_authorization",
    metadata,
    Column("state_hash", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index(None, "server_id"),
    Index(None, "expires_at"),
)
