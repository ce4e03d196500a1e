"""An index over queued runs, by which they are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0051"
branch_labels = None
depends_on = None

_WHERE = sa.text("status = 'queued'")


def upgrade() -> None:
    op.create_index(
        "ix_run_queued",
        "run",
        ["organization_id", "agent_id", "lane", "created_at"],
        sqlite_where=_WHERE,
        postgresql_where=_WHERE,
    )


def downgrade() -> None:
    op.drop_index("ix_run_queued", "run")
