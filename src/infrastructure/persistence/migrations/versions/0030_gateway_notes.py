"""What the processes that serve one call of the gateway leave for each other."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody is asked anything yet."""
    op.create_table(
        "gateway_note",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["gateway_session.id"],
            name="fk_gateway_note_session_id_gateway_session",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_note"),
    )
    op.create_index("ix_gateway_note_expires_at", "gateway_note", ["expires_at"], unique=False)
    op.create_index(
        "ix_gateway_note_session_id_call_id_id", "gateway_note", ["session_id", "call_id", "id"], unique=False
    )
    protect("gateway_note")


def downgrade() -> None:
    """Whoever waits for an answer gets none."""
    op.drop_table("gateway_note")
