"""What waits for people is delivered to the webhook of an organization's inbox. Processes of before
that still run set these deliveries aside for an hour; there are none until an organization names
the secret, which only newer processes can store."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.migrations.deliveries_without_runs import forbid, permit

revision = "0129"
down_revision = "0107"
branch_labels = None
depends_on = None

_WHERE = sa.text(
    "event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined')"
)


def upgrade() -> None:
    op.add_column("organization", sa.Column("inbox_webhook_secret", sa.Text(), nullable=True))
    permit()
    op.create_index(
        "ix_webhook_delivery_inbox",
        "webhook_delivery",
        ["organization_id", "created_at", "id"],
        sqlite_where=_WHERE,
        postgresql_where=_WHERE,
    )


def downgrade() -> None:
    op.drop_index("ix_webhook_delivery_inbox", "webhook_delivery")
    forbid()
    op.drop_column("organization", "inbox_webhook_secret")
