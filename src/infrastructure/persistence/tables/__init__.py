"""The schema for SQLite and PostgreSQL. Migrations under migrations/ create exactly this.

Every table but limit_lease has an organization_id, and on PostgreSQL a policy that compares it
(ADR 0011).
Foreign keys exist where deleting the parent must delete the child. Tables written at each step
of a run (message, run_event, tool_call, audit_event) have as few indexes as their queries allow,
and with small rows only the tree of the primary key (WITHOUT ROWID): on SQLite every changed
tree is a written page.
"""

from infrastructure.persistence.tables.agents import agent, agent_version
from infrastructure.persistence.tables.approvals import approval, timer
from infrastructure.persistence.tables.audit import audit_event, audit_forward, audit_head, audit_key, audit_seal
from infrastructure.persistence.tables.gateway import (
    gateway_call,
    gateway_client,
    gateway_grant,
    gateway_note,
    gateway_session,
)
from infrastructure.persistence.tables.identity import (
    api_key,
    console_session,
    custom_role,
    identity_provider,
    impersonation,
    organization,
    user_account,
)
from infrastructure.persistence.tables.limits import limit_lease
from infrastructure.persistence.tables.mcp import (
    mcp_connection_state,
    mcp_server,
    mcp_server_state,
    mcp_tool_definition,
    oauth_authorization,
    oauth_grant,
    person_grant,
)
from infrastructure.persistence.tables.model_providers import model_provider
from infrastructure.persistence.tables.naming import metadata
from infrastructure.persistence.tables.provisioning import (
    organization_group,
    organization_group_member,
    provisioned_user,
    scim_token,
    user_group,
    user_group_member,
)
from infrastructure.persistence.tables.runs import idempotency_key, run, run_event, run_request, tool_call
from infrastructure.persistence.tables.schedules import schedule
from infrastructure.persistence.tables.secrets import secret
from infrastructure.persistence.tables.sources import source, source_chunk, source_part
from infrastructure.persistence.tables.threads import message, thread
from infrastructure.persistence.tables.usage import budget_reservation, person_usage, tool_usage, usage
from infrastructure.persistence.tables.webhooks import push_config, webhook_delivery, webhook_key
from infrastructure.persistence.tables.workflows import (
    workflow,
    workflow_event,
    workflow_node_run,
    workflow_run,
    workflow_tool,
    workflow_version,
)

__all__ = [
    "agent",
    "agent_version",
    "api_key",
    "approval",
    "audit_event",
    "audit_forward",
    "audit_head",
    "audit_key",
    "audit_seal",
    "budget_reservation",
    "console_session",
    "custom_role",
    "gateway_call",
    "gateway_client",
    "gateway_grant",
    "gateway_note",
    "gateway_session",
    "idempotency_key",
    "identity_provider",
    "impersonation",
    "limit_lease",
    "mcp_connection_state",
    "mcp_server",
    "mcp_server_state",
    "mcp_tool_definition",
    "message",
    "metadata",
    "model_provider",
    "oauth_authorization",
    "oauth_grant",
    "organization",
    "organization_group",
    "organization_group_member",
    "person_grant",
    "person_usage",
    "provisioned_user",
    "push_config",
    "run",
    "run_event",
    "run_request",
    "schedule",
    "scim_token",
    "secret",
    "source",
    "source_chunk",
    "source_part",
    "thread",
    "timer",
    "tool_call",
    "tool_usage",
    "usage",
    "user_account",
    "user_group",
    "user_group_member",
    "webhook_delivery",
    "webhook_key",
    "workflow",
    "workflow_event",
    "workflow_node_run",
    "workflow_run",
    "workflow_tool",
    "workflow_version",
]
