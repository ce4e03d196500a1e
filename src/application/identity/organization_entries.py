"""Audit entries of what happens to an organization: in its own trail, and in that of a platform key's."""

from dataclasses import replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.system.ports import IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal
from domain.ids import AuditEventId, OrganizationId
from domain.json_value import JsonObject

PLATFORM = "platform"
"""The actor in an organization's trail when the key is another organization's: its id is nobody else's business."""


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
    """One entry if the organization is the principal's own. Else two: the trail of the principal's organization names
    the key, the other one says that it was the platform. `resource` is the organization unless given."""
    entry = audit_entry(principal, action, resource or organization_id, ids=ids, at=at, details=details)
    if organization_id == principal.organization_id:
        return (entry,)
    theirs = replace(entry, id=AuditEventId(ids.new("aud")), organization_id=organization_id, actor=PLATFORM)
    return (entry, theirs)
