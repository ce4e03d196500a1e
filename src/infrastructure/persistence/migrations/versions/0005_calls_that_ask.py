"""Tool calls whose server asks for input: the question, and what is sent back with its answer."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No call waits for input yet."""
    op.add_column("tool_call", sa.Column("elicitation", sa.Text(), nullable=True))
    op.add_column("tool_call", sa.Column("input", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Calls that wait for input are sent again from the beginning, or count as lost, when their run goes on."""
    op.execute("UPDATE tool_call SET state = 'recorded' WHERE state IN ('awaiting_input', 'input_given')")
    op.drop_column("tool_call", "input")
    op.drop_column("tool_call", "elicitation")
