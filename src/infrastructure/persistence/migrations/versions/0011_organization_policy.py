"""What organizations say of their agents: allowlist, policies, models, limits, budget, retention."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Organizations say nothing of all that."""
    op.add_column("organization", sa.Column("settings", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """What they said is forgotten."""
    op.drop_column("organization", "settings")
