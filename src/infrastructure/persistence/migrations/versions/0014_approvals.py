"""Approvals of tool calls, and timers."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    """No call waits for an approval yet."""
    op.create_table(
        "approval",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("gateway_session_id", sa.Text(), nullable=True),
        sa.Column("tool_call_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=True),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=True),
        sa.Column("allow_self_approval", sa.Boolean(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("edited_arguments", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_approval_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_approval_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_approval"),
    )
    op.create_index(
        "ix_approval_organization_id_created_at_id", "approval", ["organization_id", "created_at", "id"], unique=False
    )
    op.create_index("ix_approval_run_id", "approval", ["run_id"], unique=False)
    op.create_index(
        "ix_approval_pending",
        "approval",
        ["organization_id", "created_at", "id"],
        unique=False,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    )
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
    op.create_index("ix_timer_due_at_id", "timer", ["due_at", "id"], unique=False)
    op.create_index("ix_timer_subject_id", "timer", ["subject_id"], unique=False)
    op.add_column("tool_call", sa.Column("approval", sa.Text(), nullable=True))


def downgrade() -> None:
    """Calls that wait for an approval are lost: an older version cannot ask for it, and must not make them."""
    op.execute(
        "UPDATE tool_call SET state = 'awaiting_client' WHERE state IN ('awaiting_approval', 'approved', 'undecided')"
    )
    op.drop_column("tool_call", "approval")
    op.drop_table("timer")
    op.drop_table("approval")
