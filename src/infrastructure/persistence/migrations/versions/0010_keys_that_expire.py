"""What a key may: until when, and how often; and when it was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Keys stay as they are: without an end, without a limit of their own."""
    op.add_column("api_key", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("api_key", sa.Column("last_used_at", sa.BigInteger(), nullable=True))
    op.add_column("api_key", sa.Column("rate_calls", sa.Integer(), nullable=True))
    op.add_column("api_key", sa.Column("rate_per_s", sa.Double(), nullable=True))


def downgrade() -> None:
    """Keys that had an end have none."""
    for name in ("rate_per_s", "rate_calls", "last_used_at", "expires_at"):
        op.drop_column("api_key", name)
