"""Indexes: deliveries of all events of an inbox, runs by their error and by who started them, and
tools that are not approved."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0103"
branch_labels = None
depends_on = None

_INBOX = (
    "event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined',"
    " 'run.question_asked', 'run.client_tool_called', 'account.required', 'mcp_server.authorization_required')"
)
_INDEXES = (
    ("ix_webhook_delivery_notices", "webhook_delivery", ["organization_id", "created_at", "id"], _INBOX),
    ("ix_run_error", "run", ["organization_id", "error_code", "created_at", "id"], "error_code IS NOT NULL"),
    (
        "ix_run_organization_id_requested_by_created_at_id",
        "run",
        ["organization_id", "requested_by", "created_at", "id"],
        None,
    ),
    (
        "ix_mcp_tool_definition_standing",
        "mcp_tool_definition",
        ["server_id", "standing", "position"],
        "standing IS NOT NULL",
    ),
)


def upgrade() -> None:
    """The index of deliveries that code of before uses stays."""
    for name, table, columns, condition in _INDEXES:
        where = None if condition is None else sa.text(condition)
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, table, _, _ in _INDEXES:
        op.drop_index(name, table)
    op.execute(
        "DELETE FROM webhook_delivery WHERE event IN ('run.question_asked', 'run.client_tool_called', 'account.required',"
        " 'mcp_server.authorization_required')"
    )
