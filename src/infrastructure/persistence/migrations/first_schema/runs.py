"""Runs with their requests, events and tool calls, and what they use."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _run()
    _run_request()
    _idempotency_key()
    _run_event()
    _tool_call()
    _usage()
    _budget_reservation()


def _run() -> None:
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
        sa.Column("cancel_requested_by", sa.Text()),
        sa.Column("rolled_back", sa.Boolean(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("tool_calls", sa.Integer(), nullable=False),
        sa.Column("active_s", sa.Double(), nullable=False),
        sa.Column("pending", sa.Text()),
        sa.Column("output", sa.Text()),
        sa.Column("error_code", sa.Text()),
        sa.Column("error_detail", sa.Text()),
        sa.Column("incomplete_reason", sa.Text()),
        sa.Column("requested_by", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("lapses", sa.Integer(), nullable=False, server_default="0"),
        sa.CheckConstraint(
            "status IN ('queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled', 'halted')",
            name=op.f("ck_run_ck_run_status"),
        ),
        sa.ForeignKeyConstraint(["thread_id"], ["thread.id"], name="fk_run_thread_id_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
    )
    op.create_index("ix_run_agent_id_created_at_id", "run", ["agent_id", "created_at", "id"])
    op.create_index("ix_run_organization_id_created_at_id", "run", ["organization_id", "created_at", "id"])
    op.create_index("ix_run_thread_id_created_at_id", "run", ["thread_id", "created_at", "id"])
    op.create_index(
        "uq_run_active_thread",
        "run",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("status IN ('in_progress', 'requires_action')"),
        postgresql_where=sa.text("status IN ('in_progress', 'requires_action')"),
    )
    op.create_index(
        "ix_run_unfinished",
        "run",
        ["status", "thread_id", "attempt", "created_at", "id"],
        sqlite_where=sa.text("status IN ('queued', 'in_progress', 'requires_action')"),
        postgresql_where=sa.text("status IN ('queued', 'in_progress', 'requires_action')"),
    )
    protect("run")


def _run_request() -> None:
    op.create_table(
        "run_request",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("tool_allowlist", sa.Text()),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("overview", sa.Text()),
        sa.Column("webhook", sa.Text()),
        sa.Column("wired", sa.Text()),
        sa.Column("webhook_url", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_request_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_request"),
    )
    protect("run_request")


def _idempotency_key() -> None:
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
            deferrable=True,
            initially="DEFERRED",
        ),
        sa.PrimaryKeyConstraint("organization_id", "key", name="pk_idempotency_key"),
    )
    op.create_index(
        "ix_idempotency_key_organization_id_created_at", "idempotency_key", ["organization_id", "created_at"]
    )
    op.create_index("ix_idempotency_key_run_id", "idempotency_key", ["run_id"])
    protect("idempotency_key")


def _run_event() -> None:
    op.create_table(
        "run_event",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text()),
        sa.Column("message_id", sa.Text()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_event_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_run_event"),
        sqlite_with_rowid=False,
    )
    protect("run_event")


def _tool_call() -> None:
    op.create_table(
        "tool_call",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("type", sa.Text()),
        sa.Column("server_id", sa.Text()),
        sa.Column("repeatable", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("error_code", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("settled_at", sa.BigInteger()),
        sa.Column("message_id", sa.Text()),
        sa.Column("elicitation", sa.Text()),
        sa.Column("input", sa.LargeBinary()),
        sa.Column("approval", sa.Text()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_tool_call_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "id", name="pk_tool_call"),
    )
    protect("tool_call")


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("unpriced_calls", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_usage_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "day", "agent_id", "model", name="pk_usage"),
        sqlite_with_rowid=False,
    )
    protect("usage")


def _budget_reservation() -> None:
    op.create_table(
        "budget_reservation",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount_nano_usd", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_budget_reservation_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_budget_reservation"),
    )
    op.create_index("ix_budget_reservation_organization_id", "budget_reservation", ["organization_id"])
    protect("budget_reservation")
