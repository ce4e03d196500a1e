"""The index over unfinished runs in the order in which they are looked for: by status, then thread and place in its queue."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_UNFINISHED = sa.text("status IN ('queued', 'in_progress', 'requires_action')")


def upgrade() -> None:
    """Only unfinished runs are read for it, and those are few."""
    op.drop_index("ix_run_unfinished", table_name="run")
    _create(["status", "thread_id", "attempt", "created_at", "id"])


def downgrade() -> None:
    """By thread, then status."""
    op.drop_index("ix_run_unfinished", table_name="run")
    _create(["thread_id", "status"])


def _create(columns: list[str]) -> None:
    op.create_index(
        "ix_run_unfinished", "run", columns, unique=False, sqlite_where=_UNFINISHED, postgresql_where=_UNFINISHED
    )
