"""Model settings of schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Schedules from before have none."""
    op.add_column("schedule", sa.Column("model_settings", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("schedule", "model_settings")
