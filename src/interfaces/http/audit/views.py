"""Audit events as JSON."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypedDict

from application.audit.export_audit_events import ExportedEntry
from application.audit.verify_audit_chain import ChainReport
from domain.audit.chain import SEALED_FIELDS, StoredValue
from domain.audit.event import AuditAction, AuditEvent
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import Items, NextCursor, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AuditEventView(TypedDict):
    """`actor` (an API key id or `system`) performed `action` on a resource."""

    id: Annotated[str, "Id of the event."]
    action: Annotated[AuditAction, "What was done."]
    actor: Annotated[str, "Who did it: the id of an API key, `schedule:` and the id of a schedule, or `system`."]
    resource: Annotated[str, "Id of the affected object."]
    at: Annotated[Timestamp, "Time of the action."]
    run_id: Annotated[str | None, "Id of the run, if it was part of one."]
    tool: Annotated[str | None, "Name of the tool as models see it, for a tool call."]
    server_id: Annotated[str | None, "Id of the tool's MCP server, if it has one."]
    duration_ms: Annotated[int | None, "Duration of a tool call."]
    arguments_digest: Annotated[str | None, "Digest of the arguments of a tool call: `sha256:` and hex."]
    details: Annotated[Mapping[str, object], "Further fields of the action."]


class AuditEventPage(TypedDict):
    """A page of audit events; `next_cursor` is null on the last one."""

    data: Items[AuditEventView]
    next_cursor: NextCursor


class BrokenLinkView(TypedDict):
    """The first place where the chain is broken. `number` is null for an event that was never
    sealed, `event_id` for one that is lost."""

    number: Annotated[int | None, "Number of the seal; null for an event that was never sealed."]
    event_id: Annotated[str | None, "Id of the event; null for one that is lost."]
    problem: Annotated[
        Literal["edited", "deleted", "reordered", "inserted", "head_edited", "head_deleted", "unsealed"],
        "What is wrong there.",
    ]


class UnknownKeyView(TypedDict):
    """Seals under a key that is not among the current secret keys: they cannot be verified."""

    key_id: Annotated[str, "Id of the key, derived from the secret key."]
    links: Annotated[int, "Number of events sealed with it."]


class ChainReportView(TypedDict):
    """`ok` if every event is unchanged and none has waited for its seal for more than ten
    seconds."""

    ok: Annotated[bool, "Whether every event is unchanged and none has waited for its seal for more than ten seconds."]
    checked: Annotated[int, "Number of verified events."]
    sealed_through: Annotated[int, "Number of the last seal."]
    pruned_through: Annotated[int, "Number of the last seal that retention removed."]
    unsealed: Annotated[int, "Number of events that wait for their seal."]
    sealed_late: Annotated[int, "Number of events that waited for their seal too long."]
    first_broken: Annotated[BrokenLinkView | None, "The first broken place; null if there is none."]
    unknown_keys: Annotated[list[UnknownKeyView], "Seals that cannot be verified, by key."]


def audit_event_view(event: AuditEvent) -> AuditEventView:
    return {
        "id": event.id,
        "action": event.action,
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
