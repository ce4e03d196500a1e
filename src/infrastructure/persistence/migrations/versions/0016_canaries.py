"""Canary tokens of agents, encrypted, and threads in quarantine."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_IN_QUARANTINE = sa.text("quarantined_at IS NOT NULL")


def upgrade() -> None:
    """No agent has a token, no thread is in quarantine."""
    op.add_column("agent_version", sa.Column("canary_tokens", sa.LargeBinary(), nullable=True))
    op.add_column("thread", sa.Column("quarantined_at", sa.BigInteger(), nullable=True))
    op.add_column("thread", sa.Column("quarantined_by", sa.Text(), nullable=True))
    op.add_column("thread", sa.Column("quarantined_for", sa.Text(), nullable=True))
    op.create_index(
        "ix_thread_quarantined",
        "thread",
        ["id"],
        unique=False,
        sqlite_where=_IN_QUARANTINE,
        postgresql_where=_IN_QUARANTINE,
    )


def downgrade() -> None:
    """Tokens are forgotten, and every thread is released."""
    op.drop_index("ix_thread_quarantined", table_name="thread")
    for name in ("quarantined_for", "quarantined_by", "quarantined_at"):
        op.drop_column("thread", name)
    op.drop_column("agent_version", "canary_tokens")
