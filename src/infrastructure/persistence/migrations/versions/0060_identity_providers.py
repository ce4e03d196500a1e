"""Identity providers, and users who sign in with them."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0060"
down_revision = "0057"
branch_labels = None
depends_on = None

_TABLES = ("identity_provider", "user_account")


def upgrade() -> None:
    op.create_table(
        "identity_provider",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("client_secret", sa.LargeBinary()),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("audiences", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("installation", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _organization_of("identity_provider"),
        sa.PrimaryKeyConstraint("id", name="pk_identity_provider"),
        sa.UniqueConstraint("organization_id", "name", name="uq_identity_provider_organization_id_name"),
    )
    op.create_index("ix_identity_provider_issuer", "identity_provider", ["issuer"])
    op.create_table(
        "user_account",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("email", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("role_fixed", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_sign_in_at", sa.BigInteger()),
        _organization_of("user_account"),
        sa.PrimaryKeyConstraint("id", name="pk_user_account"),
        sa.UniqueConstraint(
            "organization_id", "issuer", "subject", name="uq_user_account_organization_id_issuer_subject"
        ),
    )
    op.create_index(
        "ix_user_account_organization_id_created_at_id", "user_account", ["organization_id", "created_at", "id"]
    )
    for table in _TABLES:
        protect(table)
    _notify("identity_provider", "id", "version")
    # A sign-in writes the columns again, mostly as they were.
    _notify("user_account", "role", "status", "provider_id")


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)
        if op.get_bind().dialect.name != "sqlite":
            op.execute(f"DROP FUNCTION tell_{table}()")


def _organization_of(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id"],
        ["organization.id"],
        name=f"fk_{table}_organization_id_organization",
        ondelete="CASCADE",
    )


def _notify(table: str, *columns: str) -> None:
    """Caches of callers depend on these rows and columns (ADR 0015)."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(
        f"CREATE FUNCTION tell_{table}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        f"    PERFORM pg_notify('dragoman_rows', '{table} ' || OLD.organization_id);\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    before, after = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    changed = f"WHEN (({before}) IS DISTINCT FROM ({after}))"
    for name, change, condition in ((f"tell_{table}", "DELETE", ""), (f"tell_changed_{table}", "UPDATE", changed)):
        op.execute(
            f"CREATE TRIGGER {name} AFTER {change} ON {table} FOR EACH ROW {condition} EXECUTE FUNCTION tell_{table}()"
        )
