"""Builds the audit entry for a change by a principal."""

from datetime import datetime

from application.system.ports import IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal
from domain.ids import AuditEventId, McpServerId, RunId
from domain.json_value import JsonObject


def audit_entry(
    principal: Principal,
    action: AuditAction,
    resource: str,
    *,
    ids: IdSource,
    at: datetime,
    run_id: RunId | None = None,
    server_id: McpServerId | None = None,
    tool: str | None = None,
    duration_ms: int | None = None,
    details: JsonObject | None = None,
) -> AuditEvent:
    """The entry for `action` of `principal` on `resource`. `details` must not hold secret
    values."""
    return AuditEvent(
        id=AuditEventId(ids.new("aud")),
        organization_id=principal.organization_id,
        action=action,
        actor=principal.key_id,
        resource=resource,
        at=at,
        run_id=run_id,
        server_id=server_id,
        tool=tool,
        duration_ms=duration_ms,
        details=details or {},
    )


def team_details(before: str | None, after: str | None) -> JsonObject:
    """Of an entry, if what it is about changes its team."""
    return {} if before == after else {"team": after, **({} if before is None else {"former_team": before})}
