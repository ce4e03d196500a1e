"""Push notification configs of A2A tasks."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.row_security import protect

revision = "0079"
down_revision = "0075"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "push_config",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_push_config_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "id", name="pk_push_config"),
    )
    protect("push_config")
    op.add_column("webhook_delivery", sa.Column("push_config_id", sa.Text(), nullable=True))
    op.add_column("run", sa.Column("has_push_configs", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("run", "has_push_configs")
    op.drop_column("webhook_delivery", "push_config_id")
    op.drop_table("push_config")
