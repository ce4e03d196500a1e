"""Impersonations, and users who may act as others."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0107"
down_revision = "0101"
branch_labels = None
depends_on = None

_PARENTS = {"organization_id": "organization", "user_id": "user_account"}


def upgrade() -> None:
    op.add_column("user_account", sa.Column("may_impersonate", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "impersonation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{parent}.id"], name=f"fk_impersonation_{column}_{parent}", ondelete="CASCADE"
            )
            for column, parent in _PARENTS.items()
        ),
        sa.PrimaryKeyConstraint("id", name="pk_impersonation"),
        sa.UniqueConstraint("token_hash", name="uq_impersonation_token_hash"),
    )
    op.create_index("ix_impersonation_user_id", "impersonation", ["user_id"])
    op.create_index("ix_impersonation_organization_id_created_at", "impersonation", ["organization_id", "created_at"])
    protect("impersonation")


def downgrade() -> None:
    op.drop_table("impersonation")
    op.drop_column("user_account", "may_impersonate")
