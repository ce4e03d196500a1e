"""Nodes of workflows that wait for what their agents' runs wait for; idempotency keys of workflow runs."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_WAITING = sa.text("waits_for IS NOT NULL")
_KEYED = sa.text("idempotency_key IS NOT NULL")


def upgrade() -> None:
    """No node waits yet, and no run has a key."""
    op.add_column("workflow_node_run", sa.Column("waits_for", sa.Text(), nullable=True))
    op.add_column("workflow_node_run", sa.Column("waits_seq", sa.Integer(), nullable=True))
    op.create_index(
        "ix_workflow_node_run_waits_for",
        "workflow_node_run",
        ["waits_for"],
        unique=False,
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
    op.add_column("workflow_run", sa.Column("idempotency_key", sa.Text(), nullable=True))
    op.add_column("workflow_run", sa.Column("body_digest", sa.Text(), nullable=True))
    op.create_index(
        "uq_workflow_run_idempotency_key",
        "workflow_run",
        ["organization_id", "idempotency_key"],
        unique=True,
        sqlite_where=_KEYED,
        postgresql_where=_KEYED,
    )


def downgrade() -> None:
    """Waiting workflow runs are not woken by their agents' runs; keys are forgotten."""
    op.drop_index("uq_workflow_run_idempotency_key", "workflow_run")
    op.drop_column("workflow_run", "body_digest")
    op.drop_column("workflow_run", "idempotency_key")
    op.drop_index("ix_workflow_node_run_waits_for", "workflow_node_run")
    op.drop_column("workflow_node_run", "waits_seq")
    op.drop_column("workflow_node_run", "waits_for")
