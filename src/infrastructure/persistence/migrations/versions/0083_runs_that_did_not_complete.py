"""An index over runs that ended without completing, by which lists of them are read."""

import sqlalchemy as sa
from alembic import op

revision = "0083"
down_revision = "0097"
branch_labels = None
depends_on = None

_WHERE = sa.text("status NOT IN ('queued', 'in_progress', 'requires_action', 'completed')")


def upgrade() -> None:
    op.create_index(
        "ix_run_not_completed",
        "run",
        ["organization_id", "status", "created_at", "id"],
        sqlite_where=_WHERE,
        postgresql_where=_WHERE,
    )


def downgrade() -> None:
    op.drop_index("ix_run_not_completed", "run")
