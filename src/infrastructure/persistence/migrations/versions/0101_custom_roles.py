"""Custom roles, and the keys and users that have them."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0101"
down_revision = "0106"
branch_labels = None
depends_on = None

_HOLDERS = ("api_key", "user_account")


def upgrade() -> None:
    op.create_table(
        "custom_role",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("permissions", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_custom_role_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_custom_role"),
    )
    protect("custom_role")
    for table in _HOLDERS:
        op.add_column(table, sa.Column("custom_role", sa.Text(), nullable=True))
    _notify()


def downgrade() -> None:
    is_shared = op.get_bind().dialect.name != "sqlite"
    if is_shared:
        op.execute("DROP TRIGGER tell_custom_role_of_user_account ON user_account")
    for table in reversed(_HOLDERS):
        op.drop_column(table, "custom_role")
    op.drop_table("custom_role")
    if is_shared:
        op.execute("DROP FUNCTION tell_custom_role()")


def _notify() -> None:
    """Caches of callers depend on these rows (ADR 0015)."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(
        "CREATE FUNCTION tell_custom_role() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    PERFORM pg_notify('dragoman_rows', 'custom_role ' || OLD.organization_id);\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    op.execute(
        "CREATE TRIGGER tell_custom_role AFTER UPDATE OR DELETE ON custom_role"
        " FOR EACH ROW EXECUTE FUNCTION tell_custom_role()"
    )
    op.execute(
        "CREATE TRIGGER tell_custom_role_of_user_account AFTER UPDATE ON user_account FOR EACH ROW"
        " WHEN (OLD.custom_role IS DISTINCT FROM NEW.custom_role) EXECUTE FUNCTION tell_user_account()"
    )
