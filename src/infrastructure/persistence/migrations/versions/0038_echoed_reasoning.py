"""Where a model provider gets the model's reasoning back."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Providers from before get it within tool loops."""
    op.add_column("model_provider", sa.Column("echo_reasoning", sa.Text(), nullable=False, server_default="tool_loop"))


def downgrade() -> None:
    op.drop_column("model_provider", "echo_reasoning")
