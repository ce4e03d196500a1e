"""Schedules have output schemas of their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0054"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. NULL means that the agent's counts."""
    op.add_column("schedule", sa.Column("output_schema", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("schedule", "output_schema")
