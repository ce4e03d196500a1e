"""Audit events as JSON."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, TypedDict

from application.audit.export_audit_events import ExportedEntry
from application.audit.verify_audit_chain import ChainReport
from domain.audit.chain import SEALED_FIELDS, StoredValue
from domain.audit.event import AuditEvent
from domain.threads.message_json import timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AuditEventView(TypedDict):
    """`actor` (an API key id or `system`) performed `action` on a resource."""

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


class BrokenLinkView(TypedDict):
    """The first place where the chain is broken. `number` is null for an event that was never
    sealed, `event_id` for one that is lost."""

    number: int | None
    event_id: str | None
    problem: Literal["edited", "deleted", "reordered", "inserted", "head_edited", "head_deleted", "unsealed"]


class UnknownKeyView(TypedDict):
    """Seals under a key that is not among the current secret keys: they cannot be verified."""

    key_id: str
    links: int


class ChainReportView(TypedDict):
    """`ok` if every event is unchanged and none has waited for its seal for more than ten
    seconds."""

    ok: bool
    checked: int
    sealed_through: int
    pruned_through: int
    unsealed: int
    sealed_late: int
    first_broken: BrokenLinkView | None
    unknown_keys: list[UnknownKeyView]


def audit_event_view(event: AuditEvent) -> AuditEventView:
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


def chain_report_view(report: ChainReport) -> ChainReportView:
    broken = report.first_broken
    return {
        "ok": report.ok,
        "checked": report.checked,
        "sealed_through": report.sealed_through,
        "pruned_through": report.pruned_through,
        "unsealed": report.unsealed,
        "sealed_late": report.sealed_late,
        "first_broken": None
        if broken is None
        else {"number": broken.number, "event_id": broken.event_id, "problem": broken.problem.value},
        "unknown_keys": [{"key_id": unknown.key_id, "links": unknown.links} for unknown in report.unknown_keys],
    }


def exported_lines(part: tuple[ExportedEntry, ...]) -> bytes:
    """One line of JSON per entry."""
    return b"".join(_line(exported) for exported in part)


def _line(exported: ExportedEntry) -> bytes:
    """The entry as stored, including unreadable values: an export is evidence."""
    link = exported.link
    fields = dict(zip(SEALED_FIELDS, exported.entry, strict=True))
    document = {
        "number": None if link is None else link.number,
        **fields,
        "at": _moment(fields["at"]),
        "details": _details(fields["details"]),
        "key_id": None if link is None else link.key_id,
        "sealed_at": None if link is None else _moment(link.sealed_at),
        "seal": None if link is None else link.seal,
    }
    del document["organization_id"]
    return json.dumps(document, ensure_ascii=False, default=repr).encode("utf-8", "backslashreplace") + b"\n"


def _moment(value: StoredValue) -> object:
    try:
        return timestamp(_EPOCH + timedelta(microseconds=value)) if isinstance(value, int) else value
    except OverflowError:
        return value


def _details(value: StoredValue) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
