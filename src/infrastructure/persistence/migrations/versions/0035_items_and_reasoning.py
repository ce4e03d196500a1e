"""What a model said in its provider's own format, beside its message; tokens of its reasoning, and
estimated usage."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0038"
branch_labels = None
depends_on = None

_INDEX = "ix_message_items_key"


def upgrade() -> None:
    """Messages from before have no items, and are sent neutrally. The reasoning of earlier calls is
    not known."""
    op.add_column("message", sa.Column("items_key", sa.Text(), nullable=True))
    op.add_column("message", sa.Column("provider_items", sa.LargeBinary(), nullable=True))
    has_items = sa.text("items_key IS NOT NULL")
    op.create_index(_INDEX, "message", ["items_key"], sqlite_where=has_items, postgresql_where=has_items)
    op.add_column("run", sa.Column("reasoning_tokens", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("run", sa.Column("usage_estimated", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("usage", sa.Column("reasoning_tokens", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("usage", sa.Column("estimated_calls", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Items are removed."""
    for table, columns in (
        ("usage", ("estimated_calls", "reasoning_tokens")),
        ("run", ("usage_estimated", "reasoning_tokens")),
    ):
        for column in columns:
            op.drop_column(table, column)
    op.drop_index(_INDEX, "message")
    op.drop_column("message", "provider_items")
    op.drop_column("message", "items_key")
