"""Webhooks of runs: where they go, deliveries on their way, and the keys that sign them."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_OPEN = sa.text("state IN ('pending', 'delivering')")
_NEWEST = sa.text("expires_at IS NULL")


def upgrade() -> None:
    """No run has a webhook yet, no organization a key."""
    op.add_column("run_request", sa.Column("webhook", sa.Text(), nullable=True))
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
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_webhook_delivery_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_delivery"),
    )
    op.create_index(
        "ix_webhook_delivery_run_id_created_at_id", "webhook_delivery", ["run_id", "created_at", "id"], unique=False
    )
    op.create_index(
        "ix_webhook_delivery_open",
        "webhook_delivery",
        ["next_attempt_at", "id"],
        unique=False,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_table(
        "webhook_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
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
        sqlite_where=_NEWEST,
        postgresql_where=_NEWEST,
    )
    op.create_index("ix_webhook_key_organization_id", "webhook_key", ["organization_id"], unique=False)
    protect("webhook_delivery")
    protect("webhook_key")


def downgrade() -> None:
    """What was not delivered yet never is."""
    op.drop_table("webhook_key")
    op.drop_table("webhook_delivery")
    op.drop_column("run_request", "webhook")
