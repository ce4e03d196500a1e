"""The clients with which people sign in to the command line."""

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("identity_provider", sa.Column("cli_client_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("identity_provider", "cli_client_id")
