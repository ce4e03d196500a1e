"""Model settings of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs from before have none."""
    op.add_column("run_request", sa.Column("model_settings", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_request", "model_settings")
