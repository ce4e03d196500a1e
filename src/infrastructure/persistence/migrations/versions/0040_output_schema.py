"""Output schemas of runs, and the objects in their answers."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs from before have none."""
    op.add_column("run_request", sa.Column("output_schema", sa.Text(), nullable=True))
    op.add_column("run", sa.Column("output_json", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("run", "output_json")
    op.drop_column("run_request", "output_schema")
