"""How many runs of an agent may be in progress, for the queue."""

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

_WHERE = sa.text("max_running IS NOT NULL")


def upgrade() -> None:
    """Agents from before have no bound."""
    op.add_column("agent", sa.Column("max_running", sa.Integer(), nullable=True))
    op.create_index("ix_agent_bounded", "agent", ["id", "max_running"], sqlite_where=_WHERE, postgresql_where=_WHERE)


def downgrade() -> None:
    op.drop_index("ix_agent_bounded", "agent")
    op.drop_column("agent", "max_running")
