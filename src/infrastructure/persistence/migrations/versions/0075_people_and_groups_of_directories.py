"""People and groups that directories manage by SCIM."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0075"
down_revision = "0072"
branch_labels = None
depends_on = None

_TABLES = ("scim_token", "provisioned_user", "user_group", "user_group_member")


def upgrade() -> None:
    op.create_table(
        "scim_token",
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _cascade("scim_token", "provider_id", "identity_provider"),
        sa.PrimaryKeyConstraint("provider_id", name="pk_scim_token"),
        sa.UniqueConstraint("token_hash", name="uq_scim_token_token_hash"),
    )
    op.create_table(
        "provisioned_user",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        _cascade("provisioned_user", "user_id", "user_account"),
        _cascade("provisioned_user", "provider_id", "identity_provider"),
        sa.PrimaryKeyConstraint("user_id", name="pk_provisioned_user"),
        sa.UniqueConstraint("provider_id", "name_key", name="uq_provisioned_user_provider_id_name_key"),
    )
    op.create_table(
        "user_group",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        _cascade("user_group", "organization_id", "organization"),
        _cascade("user_group", "provider_id", "identity_provider"),
        sa.PrimaryKeyConstraint("id", name="pk_user_group"),
        sa.UniqueConstraint("provider_id", "name", name="uq_user_group_provider_id_name"),
    )
    op.create_index("ix_user_group_organization_id_name", "user_group", ["organization_id", "name"])
    op.create_table(
        "user_group_member",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        _cascade("user_group_member", "group_id", "user_group"),
        _cascade("user_group_member", "user_id", "user_account"),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="pk_user_group_member"),
    )
    op.create_index("ix_user_group_member_user_id", "user_group_member", ["user_id"])
    for table in _TABLES:
        protect(table)


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)


def _cascade(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=f"fk_{table}_{column}_{parent}", ondelete="CASCADE")
