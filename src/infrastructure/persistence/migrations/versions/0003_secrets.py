"""Named secrets of organizations."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table of its own: every value in it is encrypted."""
    op.create_table(
        "secret",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_secret_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_secret"),
    )
    op.create_index(
        "ix_secret_organization_id_created_at_name", "secret", ["organization_id", "created_at", "name"], unique=False
    )


def downgrade() -> None:
    """The secrets are lost."""
    op.drop_table("secret")
