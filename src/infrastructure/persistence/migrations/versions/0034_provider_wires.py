"""The API that a model provider is called over, and its deployments."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Providers from before choose their API by their address, and have no deployments."""
    op.add_column("model_provider", sa.Column("wire", sa.Text(), nullable=False, server_default="auto"))
    op.add_column("model_provider", sa.Column("deployments", sa.Text(), nullable=True))
    op.add_column("model_provider", sa.Column("deployment_keys", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Deployments and their keys are removed."""
    op.drop_column("model_provider", "deployment_keys")
    op.drop_column("model_provider", "deployments")
    op.drop_column("model_provider", "wire")
