"""Calls of gateway sessions that wait for an approval, and until when the others are waited for."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_OPEN = sa.text("state <> 'settled'")


def upgrade() -> None:
    """No approval is of a session yet, so its column can be made anew, as a reference, which SQLite cannot add to one."""
    op.drop_column("approval", "gateway_session_id")
    op.execute(
        "ALTER TABLE approval ADD COLUMN gateway_session_id TEXT"
        " CONSTRAINT fk_approval_gateway_session_id_gateway_session"
        " REFERENCES gateway_session (id) ON DELETE CASCADE"
    )
    op.create_index("ix_approval_gateway_session_id", "approval", ["gateway_session_id"], unique=False)
    op.add_column("gateway_call", sa.Column("due_at", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_gateway_call_open",
        "gateway_call",
        ["session_id", "name"],
        unique=False,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )


def downgrade() -> None:
    """Calls that wait are lost: an older version cannot ask for them."""
    op.drop_index("ix_gateway_call_open", "gateway_call")
    op.execute("DELETE FROM gateway_call WHERE state = 'awaiting_approval'")
    op.execute("DELETE FROM timer WHERE subject_id IN (SELECT id FROM approval WHERE gateway_session_id IS NOT NULL)")
    op.execute("DELETE FROM approval WHERE gateway_session_id IS NOT NULL")
    op.drop_column("gateway_call", "due_at")
    op.drop_index("ix_approval_gateway_session_id", "approval")
    # SQLite drops no column that refers to another table; the reference does no harm.
    if op.get_bind().dialect.name != "sqlite":
        op.drop_constraint("fk_approval_gateway_session_id_gateway_session", "approval", type_="foreignkey")
