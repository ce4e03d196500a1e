"""Installed MCP servers: what is installed of each, where and since when."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was installed before."""
    op.add_column("mcp_server", sa.Column("installed_version", sa.Text(), nullable=True))
    op.add_column("mcp_server", sa.Column("installed_location", sa.Text(), nullable=True))
    op.add_column("mcp_server", sa.Column("installed_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """The servers stay, not installed."""
    op.drop_column("mcp_server", "installed_at")
    op.drop_column("mcp_server", "installed_location")
    op.drop_column("mcp_server", "installed_version")
