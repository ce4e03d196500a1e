"""Settings of organizations: the switch of MCP, and the version that changes count up."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """MCP stays switched on."""
    op.add_column("organization", sa.Column("mcp_enabled", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("organization", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))


def downgrade() -> None:
    """MCP is switched on for everyone."""
    op.drop_column("organization", "version")
    op.drop_column("organization", "mcp_enabled")
