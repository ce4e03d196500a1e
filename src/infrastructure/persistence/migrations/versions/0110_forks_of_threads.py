"""Where a thread was forked from another one."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0102"
branch_labels = None
depends_on = None

_WHERE = sa.text("forked_from IS NOT NULL")


def upgrade() -> None:
    for name in ("forked_from", "forked_before"):
        op.add_column("thread", sa.Column(name, sa.Text(), nullable=True))
    op.create_index("ix_thread_forked_from", "thread", ["forked_from"], sqlite_where=_WHERE, postgresql_where=_WHERE)


def downgrade() -> None:
    op.drop_index("ix_thread_forked_from", "thread")
    for name in ("forked_before", "forked_from"):
        op.drop_column("thread", name)
