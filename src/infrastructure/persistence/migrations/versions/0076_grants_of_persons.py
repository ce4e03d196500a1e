"""Grants that persons gave for MCP servers which are used with each person's own account. A
separate table: the code of earlier revisions, which knows grants of organizations only, finds none
of these."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0076"
down_revision = "0077"
branch_labels = None
depends_on = None

_PARENTS = {"server_id": "mcp_server", "person_id": "user_account"}


def upgrade() -> None:
    op.create_table(
        "person_grant",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("claim", sa.Text()),
        sa.Column("claimed_until", sa.BigInteger()),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{parent}.id"], name=f"fk_person_grant_{column}_{parent}", ondelete="CASCADE"
            )
            for column, parent in _PARENTS.items()
        ),
        sa.PrimaryKeyConstraint("organization_id", "server_id", "person_id", "issuer", name="pk_person_grant"),
    )
    op.create_index("ix_person_grant_server_id", "person_grant", ["server_id"])
    op.create_index("ix_person_grant_person_id", "person_grant", ["person_id"])
    protect("person_grant")
    if op.get_bind().dialect.name == "sqlite":
        return
    # Cached grants depend on these rows (ADR 0015). A claim alone does not change the tokens.
    op.execute(
        "CREATE FUNCTION tell_person_grant() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    PERFORM pg_notify('dragoman_rows', 'person_grant ' || COALESCE(NEW.organization_id, OLD.organization_id));\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    op.execute(
        "CREATE TRIGGER tell_person_grant AFTER INSERT OR UPDATE OF sealed OR DELETE ON person_grant"
        " FOR EACH ROW EXECUTE FUNCTION tell_person_grant()"
    )


def downgrade() -> None:
    op.drop_table("person_grant")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION tell_person_grant()")
