"""Audit events: who did what to which resource. They are stored in the transaction of the change
they describe."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.ids import AuditEventId, McpServerId, OrganizationId, RunId
from domain.json_value import JsonObject


class AuditAction(StrEnum):
    """The audited actions. The values are part of the public contract."""

    RUN_STARTED = "run.started"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_CANCELLED = "run.cancelled"
    RUN_QUESTION_ANSWERED = "run.question_answered"
    SESSION_HALTED = "session.halted"
    THREAD_RELEASED = "thread.released"
    THREAD_DELETED = "thread.deleted"
    TOOL_EXECUTED = "tool.executed"
    TOOL_FAILED = "tool.failed"
    TOOL_BLOCKED = "tool.blocked"
    TOOL_APPROVAL_GIVEN = "tool.approval_given"
    TOOL_APPROVED = "tool.approved"
    TOOL_DENIED = "tool.denied"
    MCP_SERVER_CREATED = "mcp_server.created"
    MCP_SERVER_UPDATED = "mcp_server.updated"
    MCP_SERVER_DELETED = "mcp_server.deleted"
    MCP_SERVER_TESTED = "mcp_server.tested"
    MCP_SERVER_AUTHORIZED = "mcp_server.authorized"
    ACCOUNT_CONNECTED = "account.connected"
    ACCOUNT_DISCONNECTED = "account.disconnected"
    MCP_SERVER_INSTALLED = "mcp_server.installed"
    MCP_SERVER_INSTALL_FAILED = "mcp_server.install_failed"
    MCP_SERVER_UNINSTALLED = "mcp_server.uninstalled"
    MCP_SERVER_TOOL_QUARANTINED = "mcp_server.tool_quarantined"
    MCP_SERVER_TOOL_APPROVED = "mcp_server.tool_approved"
    MCP_SERVER_TOOL_REJECTED = "mcp_server.tool_rejected"
    AGENT_CREATED = "agent.created"
    AGENT_UPDATED = "agent.updated"
    AGENT_DELETED = "agent.deleted"
    ORGANIZATION_CREATED = "organization.created"
    ORGANIZATION_UPDATED = "organization.updated"
    GATEWAY_SESSION_CREATED = "gateway_session.created"
    GATEWAY_SESSION_REVOKED = "gateway_session.revoked"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    IDENTITY_PROVIDER_CREATED = "identity_provider.created"
    IDENTITY_PROVIDER_UPDATED = "identity_provider.updated"
    IDENTITY_PROVIDER_DELETED = "identity_provider.deleted"
    SCIM_TOKEN_CREATED = "identity_provider.scim_token_created"
    SCIM_TOKEN_REVOKED = "identity_provider.scim_token_revoked"
    GROUP_CREATED = "group.created"
    GROUP_UPDATED = "group.updated"
    GROUP_DELETED = "group.deleted"
    ROLE_CREATED = "role.created"
    ROLE_UPDATED = "role.updated"
    ROLE_DELETED = "role.deleted"
    USER_PROVISIONED = "user.provisioned"
    USER_CREATED = "user.created"
    USER_SIGNED_IN = "user.signed_in"
    USER_UPDATED = "user.updated"
    USER_REMOVED = "user.removed"
    SESSION_ENDED = "session.ended"
    IMPERSONATION_BEGUN = "impersonation.begun"
    IMPERSONATION_ENDED = "impersonation.ended"
    SOURCE_ADDED = "source.added"
    SOURCE_DELETED = "source.deleted"
    MODEL_PROVIDER_CREATED = "model_provider.created"
    MODEL_PROVIDER_UPDATED = "model_provider.updated"
    MODEL_PROVIDER_TESTED = "model_provider.tested"
    MODEL_PROVIDER_DELETED = "model_provider.deleted"
    RUNS_CANCELLED = "runs.cancelled"
    RUNS_REQUEUED = "runs.requeued"
    WEBHOOK_KEY_CREATED = "webhook_key.created"
    WEBHOOK_DELIVERY_RETRIED = "webhook_delivery.retried"
    PUSH_CONFIG_CREATED = "push_config.created"
    PUSH_CONFIG_DELETED = "push_config.deleted"
    SCHEDULE_CREATED = "schedule.created"
    SCHEDULE_UPDATED = "schedule.updated"
    SCHEDULE_DELETED = "schedule.deleted"
    SCHEDULE_FIRED = "schedule.fired"
    SCHEDULE_NOT_FIRED = "schedule.not_fired"
    WORKFLOW_CREATED = "workflow.created"
    WORKFLOW_UPDATED = "workflow.updated"
    WORKFLOW_DELETED = "workflow.deleted"
    WORKFLOW_RUN_STARTED = "workflow.run_started"
    WORKFLOW_RUN_RESUMED = "workflow.run_resumed"
    WORKFLOW_RUN_STOPPED = "workflow.run_stopped"
    WORKFLOW_RUN_COMPLETED = "workflow.run_completed"
    WORKFLOW_RUN_FAILED = "workflow.run_failed"
    WORKFLOW_RUN_CANCELLED = "workflow.run_cancelled"
    SECRET_SET = "secret.set"
    SECRET_DELETED = "secret.deleted"
    SECRET_KEY_ROTATED = "secret.key_rotated"
    AUDIT_PRUNED = "audit.pruned"
    RETENTION_APPLIED = "retention.applied"


DECISIONS = (
    AuditAction.TOOL_APPROVAL_GIVEN,
    AuditAction.TOOL_APPROVED,
    AuditAction.TOOL_DENIED,
    AuditAction.RUN_QUESTION_ANSWERED,
    AuditAction.WORKFLOW_RUN_RESUMED,
    AuditAction.MCP_SERVER_TOOL_APPROVED,
    AuditAction.MCP_SERVER_TOOL_REJECTED,
    AuditAction.THREAD_RELEASED,
    AuditAction.MCP_SERVER_AUTHORIZED,
)
"""What people decide about what waited for them. Entries of these actions have an index, whose
condition has them in this order."""

_KINDS_OF_ORGANIZATION = frozenset(
    {
        "audit",
        "group",
        "identity_provider",
        "impersonation",
        "key",
        "model_provider",
        "organization",
        "retention",
        "role",
        "runs",
        "secret",
        "user",
        "webhook_key",
    }
)
OF_ORGANIZATION = (
    AuditAction.SESSION_ENDED,
    *(action for action in AuditAction if action.value.partition(".")[0] in _KINDS_OF_ORGANIZATION),
)
"""Actions on what no team owns, unless the entry names what one does. An action that is not here is
seen with what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One audit entry.

    - `actor` is the id of an API key, a user or an identity provider, `schedule:` followed by a
      schedule's id, or `system`.
    - `resource` is the id of the affected object.
    - Arguments of tool calls appear only as a digest: `sha256:` and hex over canonical JSON.
    """

    id: AuditEventId
    organization_id: OrganizationId
    action: AuditAction
    actor: str
    resource: str
    at: datetime
    run_id: RunId | None = None
    tool: str | None = None
    server_id: McpServerId | None = None
    duration_ms: int | None = None
    arguments_digest: str | None = None
    details: JsonObject = field(default_factory=dict)
