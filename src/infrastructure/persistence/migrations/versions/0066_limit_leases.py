"""Limits that all processes share: rates of calls, and permits."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0066"
down_revision = "0060"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "limit_lease",
        sa.Column("limited", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("valid_until", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("limited", "holder", name="pk_limit_lease"),
    )
    op.create_index("ix_limit_lease_holder", "limit_lease", ["holder"])
    protect("limit_lease", organization=None)
    if op.get_bind().dialect.name != "sqlite":
        # Commits of lots alone need not wait for the disk.
        op.execute("ALTER TABLE limit_lease SET UNLOGGED")


def downgrade() -> None:
    op.drop_table("limit_lease")
