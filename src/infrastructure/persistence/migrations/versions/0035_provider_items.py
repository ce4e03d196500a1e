"""What a model said in its provider's own format, beside its message."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0038"
branch_labels = None
depends_on = None

_INDEX = "ix_message_items_key"


def upgrade() -> None:
    """Messages from before have no items, and are sent neutrally."""
    op.add_column("message", sa.Column("items_key", sa.Text(), nullable=True))
    op.add_column("message", sa.Column("provider_items", sa.LargeBinary(), nullable=True))
    has_items = sa.text("items_key IS NOT NULL")
    op.create_index(_INDEX, "message", ["items_key"], sqlite_where=has_items, postgresql_where=has_items)


def downgrade() -> None:
    """Items are removed."""
    op.drop_index(_INDEX, "message")
    op.drop_column("message", "provider_items")
    op.drop_column("message", "items_key")
