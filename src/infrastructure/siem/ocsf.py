"""Audit entries as events of the Open Cybersecurity Schema Framework (OCSF 1.8.0), for receivers
outside.

Class and activity follow the action. What OCSF has no attribute for is in `unmapped`, under our
names.
"""

import json
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from domain.audit.chain import SEALED_FIELDS
from domain.audit.chain_check import StoredLink
from domain.json_value import JsonObject, JsonValue
from infrastructure.secrets.redaction import Redactor

VERSION = "1.8.0"
MAX_EVENT_BYTES: Final = 59_000
"""In JSON: with its header it fits in a datagram."""
_LONGEST_TEXTS = (8_192, 1_024, 128)
"""Characters of a text in an event; the next one where the event is too large with the one
before."""
_MARK = " [cut]"
_PRODUCT = "dragoman"

_AUTHENTICATION, _ACCOUNT_CHANGE, _DETECTION, _API = 3002, 3001, 2004, 6003
_CATEGORIES = {2: "Findings", 3: "Identity & Access Management", 6: "Application Activity"}
_CLASSES = {
    _AUTHENTICATION: "Authentication",
    _ACCOUNT_CHANGE: "Account Change",
    _DETECTION: "Detection Finding",
    _API: "API Activity",
}
_INFORMATIONAL, _LOW, _MEDIUM, _HIGH = 1, 2, 3, 4
_SEVERITIES = {_INFORMATIONAL: "Informational", _LOW: "Low", _MEDIUM: "Medium", _HIGH: "High"}
_SUCCESS, _FAILURE = 1, 2
_STATUSES = {_SUCCESS: "Success", _FAILURE: "Failure"}
_USER, _SYSTEM, _SERVICE = 1, 3, 4
_OPENID = 4
_OTHER = 99


@dataclass(frozen=True, slots=True)
class _Kind:
    """Class, activity and severity of an action. An activity 99 has the name of our action."""

    class_uid: int
    activity_id: int
    severity_id: int = _INFORMATIONAL


_ACTIONS = {
    "user.signed_in": _Kind(_AUTHENTICATION, 1),
    "user.created": _Kind(_ACCOUNT_CHANGE, 1),
    "user.provisioned": _Kind(_ACCOUNT_CHANGE, 1),
    "user.updated": _Kind(_ACCOUNT_CHANGE, _OTHER),
    "user.removed": _Kind(_ACCOUNT_CHANGE, 6),
    "session.halted": _Kind(_DETECTION, 1, _HIGH),
    "thread.released": _Kind(_DETECTION, 3),
    "tool.blocked": _Kind(_DETECTION, 1, _LOW),
    "mcp_server.tool_quarantined": _Kind(_DETECTION, 1, _MEDIUM),
    "mcp_server.tool_approved": _Kind(_DETECTION, 3),
    "mcp_server.tool_rejected": _Kind(_DETECTION, 3),
}
_TITLES = {
    "session.halted": "Policy or a canary token stopped an agent",
    "thread.released": "A quarantined thread was released",
    "tool.blocked": "Policy blocked a tool call",
    "mcp_server.tool_quarantined": "An MCP server changed the definition of a tool",
    "mcp_server.tool_approved": "A changed tool of an MCP server was approved",
    "mcp_server.tool_rejected": "A changed tool of an MCP server was rejected",
}
_VERBS = {"created": 1, "added": 1, "set": 3, "updated": 3, "deleted": 4, "removed": 4, "revoked": 4}
"""Activities of API Activity by the last word of an action; others are 99."""
_ACTIVITIES = {
    _AUTHENTICATION: {1: "Logon"},
    _ACCOUNT_CHANGE: {1: "Create", 6: "Delete"},
    _DETECTION: {1: "Create", 3: "Close"},
    _API: {1: "Create", 3: "Update", 4: "Delete"},
}
_FAILED = ("failed", "not_fired")
_UNMAPPED = ("action", "run_id", "tool", "server_id", "duration_ms", "arguments_digest")


class OcsfEvents:
    """Rules:
    - Every action has an event: classes for sign-ins, accounts and findings, API Activity for all
      others.
    - `metadata.uid` is the id of the entry: a receiver recognizes an entry that is sent again.
    - `metadata.sequence` is the number in the organization's chain, without gaps.
    - Secrets that this process knows, and values under names of secrets, are removed from details.
    - Texts over 8,192 characters are cut and marked, and shorter ones where the event would be over
      59,000 bytes. Details that are too large even so are left out. So no entry is refused for its
      size alone.
    """

    def __init__(self, *, redactor: Redactor, product_version: str) -> None:
        self._redactor = redactor
        self._product = {"name": _PRODUCT, "vendor_name": _PRODUCT, "version": product_version}

    def of(self, link: StoredLink) -> JsonObject:
        """The event of a link with its entry."""
        entry = cast("dict[str, JsonValue]", dict(zip(SEALED_FIELDS, link.entry or (), strict=False)))
        action = str(entry["action"])
        kind = _kind_of(action)
        activity = _ACTIVITIES[kind.class_uid].get(kind.activity_id, action)
        failed = action.endswith(_FAILED)
        event: JsonObject = {
            "category_uid": kind.class_uid // 1000,
            "category_name": _CATEGORIES[kind.class_uid // 1000],
            "class_uid": kind.class_uid,
            "class_name": _CLASSES[kind.class_uid],
            "activity_id": kind.activity_id,
            "activity_name": activity,
            "type_uid": kind.class_uid * 100 + kind.activity_id,
            "type_name": f"{_CLASSES[kind.class_uid]}: {activity if kind.activity_id != _OTHER else 'Other'}",
            "severity_id": kind.severity_id,
            "severity": _SEVERITIES[kind.severity_id],
            "time": _milliseconds(entry["at"]),
            "message": f"{action} {entry['resource']} by {entry['actor']}",
            "metadata": self._metadata(entry, link),
            "unmapped": self._unmapped(entry, link),
        }
        if kind.class_uid != _DETECTION:
            status = _FAILURE if failed else _SUCCESS
            event |= {"status_id": status, "status": _STATUSES[status]}
        return _bounded(event | _of_class(kind.class_uid, action, entry))

    def _metadata(self, entry: dict[str, JsonValue], link: StoredLink) -> JsonObject:
        return {
            "version": VERSION,
            "product": cast(JsonObject, self._product),
            "uid": entry["id"],
            "tenant_uid": entry["organization_id"],
            "event_code": entry["action"],
            "sequence": link.link.number,
            "logged_time": _milliseconds(link.link.sealed_at),
        }

    def _unmapped(self, entry: dict[str, JsonValue], link: StoredLink) -> JsonObject:
        found: JsonObject = {name: entry[name] for name in _UNMAPPED if entry[name] is not None}
        details = self._redactor.redact_value(_decoded(entry["details"]))
        return {**found, "resource": entry["resource"], "details": cast(JsonValue, details), "seal": link.link.seal}


def _of_class(class_uid: int, action: str, entry: dict[str, JsonValue]) -> JsonObject:
    actor: JsonObject = {"user": _user(str(entry["actor"]))}
    about: JsonObject = {"uid": entry["resource"], "type": action.partition(".")[0]}
    match class_uid:
        case 3002:
            return {
                "actor": actor,
                "user": _user(str(entry["resource"])),
                "service": {"name": _PRODUCT},
                "auth_protocol_id": _OPENID,
                "auth_protocol": "OpenID",
                "is_remote": True,
            }
        case 3001:
            return {"actor": actor, "user": _user(str(entry["resource"]))}
        case 2004:
            finding: JsonObject = {"uid": _subject(entry), "title": _TITLES[action]}
            return {"finding_info": finding, "resources": [about], "is_alert": _kind_of(action).activity_id == 1}
        case _:
            api: JsonObject = {"operation": action, "service": {"name": _PRODUCT}}
            # The trail does not store from where a request came; OCSF requires a source.
            return {"actor": actor, "api": api, "resources": [about], "src_endpoint": {"svc_name": _PRODUCT}}


def _kind_of(action: str) -> _Kind:
    return _ACTIONS.get(action) or _Kind(_API, _VERBS.get(action.rpartition(".")[2], _OTHER))


def _subject(entry: dict[str, JsonValue]) -> JsonValue:
    """What a finding is about, and its release names: the thread of a stopped run, else the
    resource."""
    details = _decoded(entry["details"])
    thread_id = details.get("thread_id") if isinstance(details, dict) else None
    return thread_id or entry["resource"]


def _user(actor: str) -> JsonObject:
    """An API key is a service's, `system` and schedules are ours, all others are people."""
    kind = _SERVICE if actor.startswith("key_") else _SYSTEM if actor.startswith(("system", "schedule:")) else _USER
    names = {_USER: "User", _SYSTEM: "System", _SERVICE: "Service"}
    return {"uid": actor, "type_id": kind, "type": names[kind]}


def _bounded(event: JsonObject) -> JsonObject:
    """The event with its longest texts cut, as far as its size needs it."""
    bounded = event
    for longest in _LONGEST_TEXTS:
        bounded = cast(JsonObject, _cut(event, longest))
        if len(msgspec.json.encode(bounded)) <= MAX_EVENT_BYTES:
            return bounded
    return bounded | {"unmapped": cast(JsonObject, bounded["unmapped"]) | {"details": _MARK.strip()}}


def _cut(value: JsonValue, longest: int) -> JsonValue:
    """Texts with at most so many characters and the mark, and without what is no character (half a
    surrogate pair)."""
    match value:
        case str():
            text = value if len(value) <= longest else value[:longest] + _MARK
            return text.encode(errors="replace").decode()
        case dict():
            return {str(_cut(name, longest)): _cut(part, longest) for name, part in value.items()}
        case list() | tuple():
            return [_cut(part, longest) for part in value]
        case _:
            return value


def _milliseconds(micros: JsonValue) -> int:
    return micros // 1000 if isinstance(micros, int) else 0


def _decoded(details: JsonValue) -> JsonValue:
    """Details as stored; text that is no JSON stays text."""
    try:
        return cast(JsonValue, json.loads(str(details)))
    except ValueError:
        return str(details)
