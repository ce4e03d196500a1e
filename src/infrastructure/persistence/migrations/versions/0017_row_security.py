"""Row security on PostgreSQL: what works for one organization sees and changes nothing of another's."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.migrations.row_security import ensure_roles, protect, unprotect

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_OF_ORGANIZATIONS = (
    "agent",
    "agent_version",
    "api_key",
    "approval",
    "budget_reservation",
    "idempotency_key",
    "mcp_server",
    "mcp_server_state",
    "mcp_tool_definition",
    "message",
    "model_provider",
    "oauth_authorization",
    "oauth_grant",
    "run",
    "run_event",
    "run_request",
    "secret",
    "source",
    "source_chunk",
    "source_part",
    "thread",
    "timer",
    "tool_call",
    "usage",
)
_SEALED = ("audit_seal", "audit_head")
_OTHERS = ("organization", "audit_event", "audit_key")


def upgrade() -> None:
    """Two roles, and policies for them on every table."""
    if op.get_bind().dialect.name == "sqlite":
        return
    ensure_roles(op.get_bind(), REQUEST_ROLE, SYSTEM_ROLE)
    op.execute(f"GRANT USAGE ON SCHEMA {_schema()} TO {REQUEST_ROLE}, {SYSTEM_ROLE}")
    for table in _OF_ORGANIZATIONS:
        protect(table)
    # Organizations come and go by platform keys only. The audit trail is added to, and sealed and pruned by the system.
    protect("organization", organization="id", requests_may="SELECT, UPDATE")
    protect("audit_event", requests_may="SELECT, INSERT")
    for table in _SEALED:
        protect(table, requests_may="SELECT")
    protect("audit_key", organization=None)
    op.execute(f"GRANT USAGE ON SEQUENCE source_chunk_id_seq TO {REQUEST_ROLE}, {SYSTEM_ROLE}")
    # Who starts finds out whether to migrate before acting as anybody; being ready includes being able to write.
    op.execute("GRANT SELECT ON alembic_version TO PUBLIC")
    op.execute(f"GRANT UPDATE ON alembic_version TO {SYSTEM_ROLE}")


def downgrade() -> None:
    """The roles stay: other databases of the server may use them."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(f"REVOKE USAGE ON SCHEMA {_schema()} FROM {REQUEST_ROLE}, {SYSTEM_ROLE}")
    op.execute(f"REVOKE ALL ON alembic_version FROM PUBLIC, {SYSTEM_ROLE}")
    op.execute(f"REVOKE ALL ON SEQUENCE source_chunk_id_seq FROM {REQUEST_ROLE}, {SYSTEM_ROLE}")
    for table in (*_OF_ORGANIZATIONS, *_SEALED, *_OTHERS):
        unprotect(table)


def _schema() -> str:
    return str(op.get_bind().execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one())
