"""Approvals of tool calls, and timers."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect


def create() -> None:
    _approval()
    _timer()


def _approval() -> None:
    op.create_table(
        "approval",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("tool_call_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text()),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=False),
        sa.Column("requested_by", sa.Text()),
        sa.Column("allow_self_approval", sa.Boolean(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger()),
        sa.Column("decided_by", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("edited_arguments", sa.Text()),
        sa.Column("gateway_session_id", sa.Text()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_approval_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_approval_run_id_run", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["gateway_session_id"],
            ["gateway_session.id"],
            name="fk_approval_gateway_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_approval"),
    )
    op.create_index("ix_approval_organization_id_created_at_id", "approval", ["organization_id", "created_at", "id"])
    op.create_index("ix_approval_run_id", "approval", ["run_id"])
    op.create_index(
        "ix_approval_pending",
        "approval",
        ["organization_id", "created_at", "id"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index("ix_approval_gateway_session_id", "approval", ["gateway_session_id"])
    protect("approval")


def _timer() -> None:
    op.create_table(
        "timer",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_timer_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_timer"),
    )
    op.create_index("ix_timer_due_at_id", "timer", ["due_at", "id"])
    op.create_index("ix_timer_subject_id", "timer", ["subject_id"])
    protect("timer")
