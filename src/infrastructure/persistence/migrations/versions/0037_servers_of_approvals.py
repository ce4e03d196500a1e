"""The MCP server that an approval is bound to."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Approvals from before are bound to no server."""
    op.add_column("approval", sa.Column("server", sa.Text(), nullable=True))


def downgrade() -> None:
    """Approvals are bound to no server any more, and pending ones are requested again."""
    op.drop_column("approval", "server")
