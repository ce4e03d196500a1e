"""Seals over the audit trail, the signed end of each chain, and the keys that have sealed."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Entries of before are sealed by the first start: from then on they cannot be changed unnoticed."""
    op.create_table(
        "audit_seal",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "number", name="pk_audit_seal"),
        sa.UniqueConstraint("event_id", name="uq_audit_seal_event_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_head",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.Column("pruned_through", sa.BigInteger(), nullable=False),
        sa.Column("pruned_seal", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", name="pk_audit_head"),
    )
    op.create_table(
        "audit_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_key"),
    )


def downgrade() -> None:
    """The entries stay, without what shows that they are untouched."""
    for table in ("audit_key", "audit_head", "audit_seal"):
        op.drop_table(table)
