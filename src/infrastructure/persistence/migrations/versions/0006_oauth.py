"""OAuth grants for MCP servers, and authorizations under way."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables; what they hold is encrypted."""
    op.create_table(
        "oauth_grant",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_oauth_grant_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "server_id", "issuer", name="pk_oauth_grant"),
    )
    op.create_index("ix_oauth_grant_server_id", "oauth_grant", ["server_id"], unique=False)
    op.create_table(
        "oauth_authorization",
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["mcp_server.id"], name="fk_oauth_authorization_server_id_mcp_server", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("state_hash", name="pk_oauth_authorization"),
    )
    op.create_index("ix_oauth_authorization_server_id", "oauth_authorization", ["server_id"], unique=False)
    op.create_index("ix_oauth_authorization_expires_at", "oauth_authorization", ["expires_at"], unique=False)


def downgrade() -> None:
    """Servers that people authorized have to be authorized anew."""
    op.drop_table("oauth_authorization")
    op.drop_table("oauth_grant")
