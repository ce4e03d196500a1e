"""Groups that organizations manage, who may decide an approval, and the people behind API keys."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0077"
down_revision = "0079"
branch_labels = None
depends_on = None

_TABLES = ("organization_group", "organization_group_member")


def upgrade() -> None:
    op.create_table(
        "organization_group",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("claims", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        _cascade("organization_group", "organization_id", "organization"),
        sa.PrimaryKeyConstraint("id", name="pk_organization_group"),
        sa.UniqueConstraint("organization_id", "name", name="uq_organization_group_organization_id_name"),
    )
    op.create_table(
        "organization_group_member",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("by_claim", sa.Boolean(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        _cascade("organization_group_member", "group_id", "organization_group"),
        _cascade("organization_group_member", "user_id", "user_account"),
        sa.PrimaryKeyConstraint("group_id", "user_id", "by_claim", name="pk_organization_group_member"),
    )
    op.create_index("ix_organization_group_member_user_id", "organization_group_member", ["user_id"])
    for table in _TABLES:
        protect(table)
    op.add_column("approval", sa.Column("approvers", sa.Text(), nullable=True))
    op.add_column("api_key", sa.Column("person_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("api_key", "person_id")
    op.drop_column("approval", "approvers")
    for table in reversed(_TABLES):
        op.drop_table(table)


def _cascade(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=f"fk_{table}_{column}_{parent}", ondelete="CASCADE")
