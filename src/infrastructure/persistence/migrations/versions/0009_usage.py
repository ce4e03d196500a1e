"""What models were used for by day, and what runs have reserved against daily budgets."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Sums begin with this version; they are not made up for runs of before."""
    op.create_table(
        "usage",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("unpriced_calls", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name="fk_usage_organization_id_organization", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("organization_id", "day", "agent_id", "model", name="pk_usage"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "budget_reservation",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount_nano_usd", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_budget_reservation_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_budget_reservation"),
    )
    op.create_index("ix_budget_reservation_organization_id", "budget_reservation", ["organization_id"])


def downgrade() -> None:
    """Both tables go."""
    op.drop_table("budget_reservation")
    op.drop_table("usage")
