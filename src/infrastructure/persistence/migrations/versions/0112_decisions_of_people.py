"""Refusals of tools in quarantine, and an index of people's decisions among the audit entries."""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0110"
branch_labels = None
depends_on = None

_WHERE = sa.text(
    "action IN ('tool.approval_given', 'tool.approved', 'tool.denied', 'run.question_answered', 'workflow.run_resumed',"
    " 'mcp_server.tool_approved', 'mcp_server.tool_rejected', 'thread.released', 'mcp_server.authorized')"
)


def upgrade() -> None:
    op.add_column("mcp_tool_definition", sa.Column("rejection", sa.Text(), nullable=True))
    op.create_index(
        "ix_audit_event_decisions",
        "audit_event",
        ["organization_id", "at", "id"],
        sqlite_where=_WHERE,
        postgresql_where=_WHERE,
    )


def downgrade() -> None:
    op.drop_index("ix_audit_event_decisions", "audit_event")
    op.drop_column("mcp_tool_definition", "rejection")
