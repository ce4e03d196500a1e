"""What a model provider said when it failed a run, beside the run's own error."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of runs that have failed before, what their providers said is not known."""
    op.add_column("run", sa.Column("provider_error", sa.Text(), nullable=True))


def downgrade() -> None:
    """What providers said is forgotten."""
    op.drop_column("run", "provider_error")
