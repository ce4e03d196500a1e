"""The revisions whose code works with a schema, beside its own."""

import sqlalchemy as sa
from alembic import op

revision = "0067"
down_revision = "0068"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Schemas from before name none."""
    op.add_column("alembic_version", sa.Column("works_with", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("alembic_version", "works_with")
