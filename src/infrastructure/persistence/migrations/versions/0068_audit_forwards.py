"""How far each organization's audit chain was sent to the receiver of audit entries."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0068"
down_revision = "0066"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_forward",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", name="pk_audit_forward"),
    )
    protect("audit_forward", requests_may="SELECT")


def downgrade() -> None:
    op.drop_table("audit_forward")
