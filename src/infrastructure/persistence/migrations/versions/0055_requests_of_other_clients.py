"""What clients of other protocols send with a run: their tools, their instructions, and the digest
of the conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0042"
branch_labels = None
depends_on = None

_FILLED = sa.text("history_key IS NOT NULL")


def upgrade() -> None:
    """Runs from before have none."""
    op.add_column("run_request", sa.Column("client_tools", sa.Text(), nullable=True))
    op.add_column("run_request", sa.Column("instructions", sa.Text(), nullable=True))
    op.add_column("run_request", sa.Column("history_key", sa.Text(), nullable=True))
    op.add_column("run_request", sa.Column("client_request", sa.Text(), nullable=True))
    op.create_index(
        "ix_run_request_history_key",
        "run_request",
        ["organization_id", "history_key"],
        sqlite_where=_FILLED,
        postgresql_where=_FILLED,
    )


def downgrade() -> None:
    op.drop_index("ix_run_request_history_key", "run_request")
    op.drop_column("run_request", "client_request")
    op.drop_column("run_request", "history_key")
    op.drop_column("run_request", "instructions")
    op.drop_column("run_request", "client_tools")
