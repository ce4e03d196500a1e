"""How many people must approve a call, and who did."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0129"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("approval", sa.Column("approvals_needed", sa.Integer(), nullable=True))
    op.add_column("approval", sa.Column("consents", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("approval", "consents")
    op.drop_column("approval", "approvals_needed")
