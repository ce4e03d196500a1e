"""Audit events as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from domain.audit.event import AuditEvent
from domain.threads.message_json import timestamp


class AuditEventView(TypedDict):
    """Who (`actor`: an API key id or `system`) did what to which resource."""

    id: str
    action: str
    actor: str
    resource: str
    at: str
    run_id: str | None
    tool: str | None
    server_id: str | None
    duration_ms: int | None
    arguments_digest: str | None
    details: Mapping[str, object]


class AuditEventPage(TypedDict):
    """A page of audit events; `next_cursor` is null on the last one."""

    data: list[AuditEventView]
    next_cursor: str | None


def audit_event_view(event: AuditEvent) -> AuditEventView:
    """An audit event as JSON."""
    return {
        "id": event.id,
        "action": event.action.value,
        "actor": event.actor,
        "resource": event.resource,
        "at": timestamp(event.at),
        "run_id": event.run_id,
        "tool": event.tool,
        "server_id": event.server_id,
        "duration_ms": event.duration_ms,
        "arguments_digest": event.arguments_digest,
        "details": event.details,
    }
