"""Gateway sessions and the ledger of their calls."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody has opened a session yet."""
    op.create_table(
        "gateway_session",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("token_hash", sa.Text(), nullable=True),
        sa.Column("names", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_gateway_session_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["thread.id"], name="fk_gateway_session_thread_id_thread", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_gateway_session_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_session"),
        sa.UniqueConstraint("token_hash", name="uq_gateway_session_token_hash"),
    )
    op.create_index("ix_gateway_session_thread_id", "gateway_session", ["thread_id"], unique=False)
    op.create_index("ix_gateway_session_run_id", "gateway_session", ["run_id"], unique=False)
    op.create_index(
        "ix_gateway_session_organization_id_created_at_id",
        "gateway_session",
        ["organization_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "gateway_call",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=True),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_call_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_id", "id", name="pk_gateway_call"),
        sqlite_with_rowid=False,
    )
    protect("gateway_session")
    protect("gateway_call")


def downgrade() -> None:
    """Sessions end, and their calls are in the audit trail only."""
    op.drop_table("gateway_call")
    op.drop_table("gateway_session")
