"""Indexes: deliveries of all events of an inbox, runs by their error and by who started them, and tools that are not approved."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0103"
branch_labels = None
depends_on = None

_BEFORE = "'approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined'"
_ADDED = "'run.question_asked', 'run.client_tool_called', 'account.required', 'mcp_server.authorization_required'"
_INBOX = ("ix_webhook_delivery_inbox", "webhook_delivery", ["organization_id", "created_at", "id"])
_RUNS_BY_ERROR = ("ix_run_error", "run", ["organization_id", "error_code", "created_at", "id"])
_RUNS_BY_STARTER = (
    "ix_run_organization_id_requested_by_created_at_id",
    "run",
    ["organization_id", "requested_by", "created_at", "id"],
)
_STANDINGS = ("ix_mcp_tool_definition_standing", "mcp_tool_definition", ["server_id", "standing", "position"])


def upgrade() -> None:
    op.drop_index(_INBOX[0], _INBOX[1])
    op.create_index(*_INBOX, **_where(f"event IN ({_BEFORE}, {_ADDED})"))
    op.create_index(*_RUNS_BY_ERROR, **_where("error_code IS NOT NULL"))
    op.create_index(*_RUNS_BY_STARTER)
    op.create_index(*_STANDINGS, **_where("standing IS NOT NULL"))


def downgrade() -> None:
    for name, table, _ in (_STANDINGS, _RUNS_BY_STARTER, _RUNS_BY_ERROR, _INBOX):
        op.drop_index(name, table)
    op.execute(
        "DELETE FROM webhook_delivery WHERE event IN ('run.question_asked', 'run.client_tool_called', 'account.required',"
        " 'mcp_server.authorization_required')"
    )
    op.create_index(*_INBOX, **_where(f"event IN ({_BEFORE})"))


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
