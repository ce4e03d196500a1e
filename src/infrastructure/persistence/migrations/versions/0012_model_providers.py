"""Model providers of organizations."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The key is encrypted, or that of a named secret."""
    op.create_table(
        "model_provider",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("api_key", sa.LargeBinary(), nullable=True),
        sa.Column("secret_name", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_model_provider_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_model_provider"),
    )
    op.create_index(
        "ix_model_provider_organization_id_created_at_name",
        "model_provider",
        ["organization_id", "created_at", "name"],
        unique=False,
    )


def downgrade() -> None:
    """The providers are lost, with their keys."""
    op.drop_table("model_provider")
