"""The persons whose accounts schedules use."""

import sqlalchemy as sa
from alembic import op

revision = "0097"
down_revision = "0082"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedule", sa.Column("person_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("schedule", "person_id")
