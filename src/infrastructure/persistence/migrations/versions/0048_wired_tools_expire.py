"""When what is bound to tools of workflow runs expires."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tools from before hold their bound values in `sealed`, and go with their run."""
    op.add_column("workflow_tool", sa.Column("bound", sa.LargeBinary(), nullable=True))
    op.add_column("workflow_tool", sa.Column("expires_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Tools of workflow runs under way lose what is bound to them."""
    op.drop_column("workflow_tool", "expires_at")
    op.drop_column("workflow_tool", "bound")
