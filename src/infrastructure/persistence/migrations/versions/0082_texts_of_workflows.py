"""The YAML of a workflow's version as a person saved it, with its comments."""

import sqlalchemy as sa
from alembic import op

revision = "0082"
down_revision = "0078"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workflow_version", sa.Column("source_text", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("workflow_version", "source_text")
