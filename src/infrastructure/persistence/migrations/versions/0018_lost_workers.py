"""How many workers in a row were lost with a run."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No worker was lost so far."""
    op.add_column("run", sa.Column("lapses", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Lost workers are not counted."""
    op.drop_column("run", "lapses")
