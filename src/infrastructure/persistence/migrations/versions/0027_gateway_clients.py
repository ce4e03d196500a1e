"""What clients of the gateway asked for since their handshakes; changes of it are told to all processes."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody has asked for anything."""
    op.create_table(
        "gateway_client",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("log_level", sa.Text(), nullable=True),
        sa.Column("subscriptions", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_client_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_client"),
    )
    op.create_index("ix_gateway_client_session_id", "gateway_client", ["session_id"], unique=False)
    protect("gateway_client")
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(
        "CREATE FUNCTION tell_gateway_client() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    PERFORM pg_notify('dragoman_rows', 'gateway_client ' || NEW.organization_id);\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    # Rows go only with their session, which is told of for itself.
    op.execute(
        "CREATE TRIGGER tell_gateway_client AFTER UPDATE ON gateway_client"
        " FOR EACH ROW EXECUTE FUNCTION tell_gateway_client()"
    )


def downgrade() -> None:
    """Clients ask anew."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP TRIGGER tell_gateway_client ON gateway_client")
        op.execute("DROP FUNCTION tell_gateway_client()")
    op.drop_table("gateway_client")
