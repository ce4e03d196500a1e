"""Region, project and identity of model providers in clouds."""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Providers from before have none of them."""
    op.add_column("model_provider", sa.Column("cloud", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("model_provider", "cloud")
