"""Schedules, and webhooks of runs."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _schedule()
    _webhook_delivery()
    _webhook_key()


def _schedule() -> None:
    op.create_table(
        "schedule",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text()),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("tool_allowlist", sa.Text()),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("webhook", sa.Text()),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_fire_at", sa.BigInteger()),
        sa.Column("last_fired_at", sa.BigInteger()),
        sa.Column("last_run_id", sa.Text()),
        sa.Column("error_code", sa.Text()),
        sa.Column("error_detail", sa.Text()),
        sa.Column("error_at", sa.BigInteger()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("webhook_url", sa.LargeBinary()),
        sa.CheckConstraint("enabled OR next_fire_at IS NULL", name=op.f("ck_schedule_ck_schedule_paused")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_schedule_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["last_run_id"],
            ["run.id"],
            name="fk_schedule_last_run_id_run",
            ondelete="SET NULL",
            deferrable=True,
            initially="DEFERRED",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_schedule"),
        sa.UniqueConstraint("organization_id", "name", name="uq_schedule_organization_id_name"),
    )
    op.create_index("ix_schedule_organization_id_created_at_id", "schedule", ["organization_id", "created_at", "id"])
    op.create_index("ix_schedule_next_fire_at_id", "schedule", ["next_fire_at", "id"])
    op.create_index("ix_schedule_last_run_id", "schedule", ["last_run_id"])
    protect("schedule")


def _webhook_delivery() -> None:
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("retried_after", sa.Integer(), nullable=False),
        sa.Column("last_status", sa.Integer()),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger()),
        sa.Column("delivered_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_webhook_delivery_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_delivery"),
    )
    op.create_index("ix_webhook_delivery_run_id_created_at_id", "webhook_delivery", ["run_id", "created_at", "id"])
    op.create_index(
        "ix_webhook_delivery_open",
        "webhook_delivery",
        ["next_attempt_at", "id"],
        sqlite_where=sa.text("state IN ('pending', 'delivering')"),
        postgresql_where=sa.text("state IN ('pending', 'delivering')"),
    )
    protect("webhook_delivery")


def _webhook_key() -> None:
    op.create_table(
        "webhook_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_webhook_key_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_key"),
    )
    op.create_index(
        "uq_webhook_key_newest",
        "webhook_key",
        ["organization_id"],
        unique=True,
        sqlite_where=sa.text("expires_at IS NULL"),
        postgresql_where=sa.text("expires_at IS NULL"),
    )
    op.create_index("ix_webhook_key_organization_id", "webhook_key", ["organization_id"])
    protect("webhook_key")
