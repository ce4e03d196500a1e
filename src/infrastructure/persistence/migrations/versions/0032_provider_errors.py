"""The model provider's error of a failed run, beside the run's own error."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The provider errors of earlier runs are unknown."""
    op.add_column("run", sa.Column("provider_error", sa.Text(), nullable=True))


def downgrade() -> None:
    """Provider errors are removed."""
    op.drop_column("run", "provider_error")
