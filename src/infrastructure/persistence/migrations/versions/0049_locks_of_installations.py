"""The locks of installed MCP servers, by which other machines install the same."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Installations from before have none: other machines install their exact version."""
    op.add_column("mcp_server", sa.Column("installed_lock", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("mcp_server", "installed_lock")
