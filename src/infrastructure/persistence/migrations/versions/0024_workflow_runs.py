"""Runs of workflows: the run, its nodes, its events."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_UNFINISHED = sa.text("finished_at IS NULL")


def upgrade() -> None:
    """No workflow has been run yet."""
    op.create_table(
        "workflow_run",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("failed_node", sa.Text(), nullable=True),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("cancel_requested_by", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_workflow_run_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_run_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_run"),
    )
    op.create_index(
        "ix_workflow_run_organization_id_created_at_id",
        "workflow_run",
        ["organization_id", "created_at", "id"],
        unique=False,
    )
    op.create_index("ix_workflow_run_workflow_id", "workflow_run", ["workflow_id"], unique=False)
    op.create_index(
        "ix_workflow_run_unfinished",
        "workflow_run",
        ["created_at", "id"],
        unique=False,
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    )
    op.create_table(
        "workflow_node_run",
        sa.Column("workflow_run_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_workflow_node_run_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_run_id", "node_id", name="pk_workflow_node_run"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "workflow_event",
        sa.Column("workflow_run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_run_id"],
            ["workflow_run.id"],
            name="fk_workflow_event_workflow_run_id_workflow_run",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_run_id", "seq", name="pk_workflow_event"),
        sqlite_with_rowid=False,
    )
    for table in ("workflow_run", "workflow_node_run", "workflow_event"):
        protect(table)


def downgrade() -> None:
    """Runs of workflows are lost."""
    for table in ("workflow_event", "workflow_node_run", "workflow_run"):
        op.drop_table(table)
