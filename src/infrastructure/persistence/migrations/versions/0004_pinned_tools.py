"""Pinned tool definitions: which tools wait in quarantine, and what is approved of them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What was listed before is approved."""
    op.add_column("mcp_server_state", sa.Column("revision", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("mcp_tool_definition", sa.Column("standing", sa.Text(), nullable=True))
    op.add_column("mcp_tool_definition", sa.Column("approved_definition", sa.Text(), nullable=True))
    op.create_index("ix_mcp_tool_definition_server_id_name", "mcp_tool_definition", ["server_id", "name"], unique=False)


def downgrade() -> None:
    """Quarantine is lifted; definitions that are approved but not listed are lost."""
    op.execute("DELETE FROM mcp_tool_definition WHERE standing = 'dormant'")
    op.drop_index("ix_mcp_tool_definition_server_id_name", table_name="mcp_tool_definition")
    op.drop_column("mcp_tool_definition", "approved_definition")
    op.drop_column("mcp_tool_definition", "standing")
    op.drop_column("mcp_server_state", "revision")
