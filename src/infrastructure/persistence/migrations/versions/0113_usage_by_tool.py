"""Calls of tools by day, from the audit entries that are sealed from now on."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tool_usage",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("calls", "failed_calls", "blocked_calls", "duration_ms")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_tool_usage_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "day", "tool", name="pk_tool_usage"),
        sqlite_with_rowid=False,
    )
    protect("tool_usage")


def downgrade() -> None:
    op.drop_table("tool_usage")
