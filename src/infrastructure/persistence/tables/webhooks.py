"""Tables of webhooks: pending deliveries, and signing keys."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table

from infrastructure.persistence.columns.column_types import Moment, PlainText
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.partial import partial_index

# The URL is in run_request.webhook_url, in push_config, or, of what waits for people, in the secret
# that `receiver` names. During `delivering`, the delivering process is lost after
# `next_attempt_at`.
webhook_delivery = Table(
    "webhook_delivery",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE")),
    Column("event", PlainText, nullable=False),
    Column("receiver", PlainText, nullable=False),
    Column("body", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("retried_after", Integer, nullable=False),
    Column("last_status", Integer),
    Column("last_error", PlainText),
    Column("created_at", Moment, nullable=False),
    Column("next_attempt_at", Moment),
    Column("delivered_at", Moment),
    Column("push_config_id", PlainText),
    Column("workflow_run_id", PlainText, ForeignKey("workflow_run.id", ondelete="CASCADE"), index=True),
    Column("server_id", PlainText, ForeignKey("mcp_server.id", ondelete="CASCADE"), index=True),
    Index(None, "run_id", "created_at", "id"),
    Index(None, "organization_id", "created_at", "id"),
    # For code of revisions before 0108.
    partial_index(
        "ix_webhook_delivery_inbox",
        "organization_id",
        "created_at",
        "id",
        where="event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined',"
        " 'thread.quarantined')",
    ),
    partial_index(
        "ix_webhook_delivery_notices",
        "organization_id",
        "created_at",
        "id",
        where="event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined',"
        " 'thread.quarantined', 'run.question_asked', 'run.client_tool_called', 'account.required',"
        " 'mcp_server.authorization_required')",
    ),
    partial_index(
        "ix_webhook_delivery_open",
        "next_attempt_at",
        "id",
        where="state IN ('pending', 'delivering')",
    ),
)

# Of A2A tasks; `sealed` is encrypted. Deliveries name them by `push_config_id`.
push_config = Table(
    "push_config",
    metadata,
    Column("run_id", PlainText, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, nullable=False),
    Column("receiver", PlainText, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
)

# `secret` is encrypted. At most one key of an organization has no end: the newest.
webhook_key = Table(
    "webhook_key",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("organization_id", PlainText, ForeignKey("organization.id", ondelete="CASCADE"), nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    partial_index(
        "uq_webhook_key_newest",
        "organization_id",
        unique=True,
        where="expires_at IS NULL",
    ),
    Index(None, "organization_id"),
)
