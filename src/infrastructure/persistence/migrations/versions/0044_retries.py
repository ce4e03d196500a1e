"""The failed runs that retries continue."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs from before continue none."""
    op.add_column("run_request", sa.Column("retry_of", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_request", "retry_of")
