"""Lanes of runs and of schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs from before are in the lane `normal`; schedules from before have that of their agent."""
    op.add_column("run", sa.Column("lane", sa.Text(), nullable=False, server_default="normal"))
    op.add_column("schedule", sa.Column("lane", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("schedule", "lane")
    op.drop_column("run", "lane")
