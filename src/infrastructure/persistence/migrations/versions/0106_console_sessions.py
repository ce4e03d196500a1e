"""Sessions of the console, which can be listed and ended one by one."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0106"
down_revision = "0109"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_session",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text()),
        sa.Column("user_agent", sa.Text()),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_console_session_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_console_session"),
    )
    op.create_index(
        "ix_console_session_organization_id_holder_created_at_id",
        "console_session",
        ["organization_id", "holder", "created_at", "id"],
    )
    protect("console_session")
    if op.get_bind().dialect.name == "sqlite":
        return
    # Caches of open sessions depend on these rows (ADR 0015). When one was seen changes nothing in
    # them.
    op.execute(
        "CREATE FUNCTION tell_console_session() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    PERFORM pg_notify('dragoman_rows', 'console_session ' || OLD.organization_id);\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    op.execute(
        "CREATE TRIGGER tell_console_session AFTER DELETE ON console_session"
        " FOR EACH ROW EXECUTE FUNCTION tell_console_session()"
    )


def downgrade() -> None:
    op.drop_table("console_session")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION tell_console_session()")
