"""What processes report of their connections to MCP servers; who renews a grant; grants that change are told to all."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is reported yet."""
    op.create_table(
        "mcp_connection_state",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_version", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("protocol_version", sa.Text(), nullable=True),
        sa.Column("tool_count", sa.Integer(), nullable=True),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"],
            ["mcp_server.id"],
            name="fk_mcp_connection_state_server_id_mcp_server",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("server_id", "process", name="pk_mcp_connection_state"),
    )
    op.create_index("ix_mcp_connection_state_process", "mcp_connection_state", ["process"], unique=False)
    op.add_column("oauth_grant", sa.Column("claim", sa.Text(), nullable=True))
    op.add_column("oauth_grant", sa.Column("claimed_until", sa.BigInteger(), nullable=True))
    protect("mcp_connection_state")
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(
        "CREATE FUNCTION tell_oauth_grant() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    PERFORM pg_notify('dragoman_rows', 'oauth_grant ' || NEW.organization_id);\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    # A claim alone changes nothing of the tokens. Grants go only with their server.
    op.execute(
        "CREATE TRIGGER tell_oauth_grant AFTER INSERT OR UPDATE OF sealed ON oauth_grant"
        " FOR EACH ROW EXECUTE FUNCTION tell_oauth_grant()"
    )


def downgrade() -> None:
    """Reports and claims are lost."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP TRIGGER tell_oauth_grant ON oauth_grant")
        op.execute("DROP FUNCTION tell_oauth_grant()")
    op.drop_column("oauth_grant", "claimed_until")
    op.drop_column("oauth_grant", "claim")
    op.drop_table("mcp_connection_state")
