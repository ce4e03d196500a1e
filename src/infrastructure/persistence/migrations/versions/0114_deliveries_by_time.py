"""An index by which all deliveries of an organization are listed."""

from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_webhook_delivery_organization_id_created_at_id", "webhook_delivery", ["organization_id", "created_at", "id"]
    )


def downgrade() -> None:
    op.drop_index("ix_webhook_delivery_organization_id_created_at_id", "webhook_delivery")
