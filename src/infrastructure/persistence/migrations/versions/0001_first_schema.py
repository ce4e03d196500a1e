"""The first schema: organizations and keys, agents, MCP servers, threads, runs with their records, and the audit
trail."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Build it."""
    _identity()
    _agents()
    _mcp_servers()
    _threads()
    _runs()
    _run_records()
    _audit()


def downgrade() -> None:
    """Remove it, children first."""
    for table in (
        "audit_event",
        "tool_call",
        "run_event",
        "idempotency_key",
        "run_request",
        "run",
        "message",
        "thread",
        "mcp_tool_definition",
        "mcp_server_state",
        "mcp_server",
        "agent_version",
        "agent",
        "api_key",
        "organization",
    ):
        op.drop_table(table)


def _identity() -> None:
    op.create_table(
        "organization",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_organization"),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("platform", sa.Boolean(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_api_key_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("token_hash", name="uq_api_key_token_hash"),
    )
    op.create_index(
        "ix_api_key_organization_id_created_at_id", "api_key", ["organization_id", "created_at", "id"], unique=False
    )


def _agents() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_agent_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_agent"),
    )
    op.create_index(
        "ix_agent_organization_id_created_at_id", "agent", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_index(
        "uq_agent_name_in_use",
        "agent",
        ["organization_id", "name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "agent_version",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], name="fk_agent_version_agent_id_agent", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "version", name="pk_agent_version"),
    )


def _mcp_servers() -> None:
    op.create_table(
        "mcp_server",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_mcp_server_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_mcp_server"),
        sa.UniqueConstraint("organization_id", "slug", name="uq_mcp_server_organization_id_slug"),
    )
    op.create_index(
        "ix_mcp_server_organization_id_created_at_id",
        "mcp_server",
        ["organization_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "mcp_server_state",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_version", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_mcp_server_state_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("server_id", name="pk_mcp_server_state"),
    )
    op.create_table(
        "mcp_tool_definition",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_mcp_tool_definition_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("server_id", "position", name="pk_mcp_tool_definition"),
    )


def _threads() -> None:
    op.create_table(
        "thread",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_thread_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_thread"),
    )
    op.create_index(
        "ix_thread_organization_id_created_at_id", "thread", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_table(
        "message",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["thread.id"], name="fk_message_thread_id_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread_id", "position", name="pk_message"),
        sa.UniqueConstraint("run_id", "id", name="uq_message_run_id_id"),
    )


def _runs() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("cancel_requested_by", sa.Text(), nullable=True),
        sa.Column("rolled_back", sa.Boolean(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("tool_calls", sa.Integer(), nullable=False),
        sa.Column("active_s", sa.Double(), nullable=False),
        sa.Column("pending", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("incomplete_reason", sa.Text(), nullable=True),
        sa.Column("requested_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "status IN ('queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled', 'halted')",
            name="ck_run_status",
        ),
        sa.ForeignKeyConstraint(["thread_id"], ["thread.id"], name="fk_run_thread_id_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
    )
    op.create_index("ix_run_agent_id_created_at_id", "run", ["agent_id", "created_at", "id"], unique=False)
    op.create_index(
        "ix_run_organization_id_created_at_id", "run", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_index("ix_run_thread_id_created_at_id", "run", ["thread_id", "created_at", "id"], unique=False)
    op.create_index(
        "ix_run_unfinished",
        "run",
        ["thread_id", "status"],
        unique=False,
        sqlite_where=sa.text("status IN ('queued', 'in_progress', 'requires_action')"),
        postgresql_where=sa.text("status IN ('queued', 'in_progress', 'requires_action')"),
    )
    op.create_index(
        "uq_run_active_thread",
        "run",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("status IN ('in_progress', 'requires_action')"),
        postgresql_where=sa.text("status IN ('in_progress', 'requires_action')"),
    )
    op.create_table(
        "run_request",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("tool_allowlist", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("overview", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_request_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_request"),
    )


def _run_records() -> None:
    op.create_table(
        "idempotency_key",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_digest", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
            name="fk_idempotency_key_run_id_run",
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("organization_id", "key", name="pk_idempotency_key"),
    )
    op.create_index(
        "ix_idempotency_key_organization_id_created_at",
        "idempotency_key",
        ["organization_id", "created_at"],
        unique=False,
    )
    op.create_index("ix_idempotency_key_run_id", "idempotency_key", ["run_id"], unique=False)
    op.create_table(
        "run_event",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_event_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_run_event"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tool_call",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column("server_id", sa.Text(), nullable=True),
        sa.Column("repeatable", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_tool_call_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "id", name="pk_tool_call"),
    )


def _audit() -> None:
    op.create_table(
        "audit_event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("server_id", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("arguments_digest", sa.Text(), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_event"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_audit_event_organization_id_at_id", "audit_event", ["organization_id", "at", "id"], unique=False
    )
    op.create_index(
        "ix_audit_event_run_id",
        "audit_event",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("run_id IS NOT NULL"),
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
