"""Audit entries for changes of an organization: in its own trail, and in the trail of the platform
key's organization."""

from dataclasses import replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.system.ports import IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal
from domain.ids import AuditEventId, OrganizationId
from domain.json_value import JsonObject

PLATFORM = "platform"
"""The actor in an organization's trail if the key belongs to another one. The id of that key stays
private."""


def organization_entries(
    principal: Principal,
    action: AuditAction,
    organization_id: OrganizationId,
    *,
    ids: IdSource,
    at: datetime,
    details: JsonObject,
    resource: str | None = None,
) -> tuple[AuditEvent, ...]:
    """One entry if the organization is the principal's own, otherwise two. The trail of the
    principal's organization names the key; the other trail names the platform. `resource` defaults
    to the organization."""
    entry = audit_entry(principal, action, resource or organization_id, ids=ids, at=at, details=details)
    if organization_id == principal.organization_id:
        return (entry,)
    theirs = replace(entry, id=AuditEventId(ids.new("aud")), organization_id=organization_id, actor=PLATFORM)
    return (entry, theirs)
