"""Audit entries as OCSF events: every action has an event with what its class requires, and no
event has a secret."""

import json

import msgspec
import pytest

from domain.audit.chain import Link
from domain.audit.chain_check import StoredLink
from domain.audit.event import AuditAction
from domain.json_value import JsonObject
from infrastructure.secrets.redaction import Redactor
from infrastructure.siem.ocsf import MAX_EVENT_BYTES, OcsfEvents
from tests.builders import KEY, ORG, START, an_audit_event
from tests.doubles.audit_chain import entry_of

REQUIRED = {"activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid"}
"""Attributes that OCSF 1.8.0 requires of every event."""
REQUIRED_BY_CLASS = {
    2004: {"finding_info"},
    3001: {"user"},
    3002: {"user", "service"},
    6003: {"actor", "api", "src_endpoint"},
}
ACTIVITIES = {2004: {1, 2, 3}, 3001: {*range(1, 13), 99}, 3002: {*range(1, 8), 99}, 6003: {1, 2, 3, 4, 99}}
SEALED_AT = 1_800_000_000_123_456


def event_of(action: AuditAction, *, redactor: Redactor | None = None, **given: object) -> JsonObject:
    entry = entry_of(an_audit_event(action=action, **given))  # type: ignore[arg-type]
    link = Link(number=7, event_id=str(entry[0]), key_id="k", seal="ab" * 32, sealed_at=SEALED_AT)
    events = OcsfEvents(redactor=redactor or Redactor(), product_version="1.2.3")
    return events.of(StoredLink(link=link, entry=entry))


def part(event: JsonObject, name: str) -> JsonObject:
    value = event[name]
    assert isinstance(value, dict)
    return value


@pytest.mark.requirement("K8")
@pytest.mark.parametrize("action", AuditAction)
def test_every_action_has_an_event_with_what_its_class_requires(action: AuditAction) -> None:
    event = event_of(action)
    class_uid, activity_id = event["class_uid"], event["activity_id"]
    assert isinstance(class_uid, int)
    assert isinstance(activity_id, int)

    assert event.keys() >= REQUIRED | REQUIRED_BY_CLASS[class_uid]
    assert activity_id in ACTIVITIES[class_uid]
    assert event["type_uid"] == class_uid * 100 + activity_id
    assert event["category_uid"] == class_uid // 1000
    assert part(event, "metadata")["product"] == {
        "name": "dragoman",
        "vendor_name": "dragoman",
        "version": "1.2.3",
    }
    assert part(event, "metadata")["version"] == "1.8.0"
    assert part(event, "unmapped")["action"] == action.value
    if activity_id == 99:
        assert event["activity_name"] == action.value


@pytest.mark.requirement("K8")
@pytest.mark.parametrize(
    ("action", "class_uid", "activity_id"),
    [
        (AuditAction.USER_SIGNED_IN, 3002, 1),
        (AuditAction.USER_REMOVED, 3001, 6),
        (AuditAction.SESSION_HALTED, 2004, 1),
        (AuditAction.THREAD_RELEASED, 2004, 3),
        (AuditAction.MCP_SERVER_TOOL_QUARANTINED, 2004, 1),
        (AuditAction.KEY_CREATED, 6003, 1),
        (AuditAction.AGENT_UPDATED, 6003, 3),
        (AuditAction.SECRET_DELETED, 6003, 4),
        (AuditAction.RUN_STARTED, 6003, 99),
    ],
)
def test_actions_have_the_classes_of_ocsf(action: AuditAction, class_uid: int, activity_id: int) -> None:
    event = event_of(action)

    assert (event["class_uid"], event["activity_id"]) == (class_uid, activity_id)


@pytest.mark.requirement("K8")
def test_an_event_says_who_did_what_when_and_where_in_the_chain() -> None:
    event = event_of(AuditAction.AGENT_CREATED, resource="agt_1", details={"name": "first"})

    metadata, unmapped = part(event, "metadata"), part(event, "unmapped")
    assert event["time"] == int(START.timestamp() + 1) * 1000
    assert part(event, "actor")["user"] == {"uid": KEY, "type_id": 4, "type": "Service"}
    assert event["resources"] == [{"uid": "agt_1", "type": "agent"}]
    assert part(event, "api")["operation"] == "agent.created"
    assert (metadata["tenant_uid"], metadata["sequence"]) == (ORG, 7)
    assert metadata["logged_time"] == SEALED_AT // 1000
    assert unmapped["details"] == {"name": "first"}
    assert unmapped["seal"] == "ab" * 32


def test_a_failure_has_the_status_failure() -> None:
    assert event_of(AuditAction.RUN_FAILED)["status"] == "Failure"
    assert event_of(AuditAction.RUN_COMPLETED)["status"] == "Success"


def test_a_stopped_run_and_the_release_of_its_thread_are_one_finding() -> None:
    stopped = event_of(AuditAction.SESSION_HALTED, resource="run_1", details={"thread_id": "thr_1"})
    released = event_of(AuditAction.THREAD_RELEASED, resource="thr_1")

    assert part(stopped, "finding_info")["uid"] == part(released, "finding_info")["uid"] == "thr_1"
    assert stopped["severity_id"] == 4


@pytest.mark.requirement("K8")
def test_no_event_has_a_secret_that_the_process_knows_or_that_its_name_betrays() -> None:
    details: JsonObject = {"note": "with planted-secret-value in it", "api_key": "unregistered-value", "many": ["x"]}

    event = event_of(AuditAction.AGENT_UPDATED, redactor=Redactor(["planted-secret-value"]), details=details)

    assert "planted-secret-value" not in json.dumps(event)
    assert "unregistered-value" not in json.dumps(event)


@pytest.mark.parametrize(
    "details",
    [
        {"note": "x" * 100_000},
        {"note": "\x01" * 100_000},
        {"many": ["é" * 5_000] * 50},
        {"many": ["word"] * 100_000},
        {"x" * 100_000: "value"},
    ],
)
def test_an_event_is_never_too_large_for_a_datagram(details: JsonObject) -> None:
    event = event_of(AuditAction.TOOL_FAILED, tool="mcp__" + "t" * 200_000, resource="r" * 9_000, details=details)

    encoded = msgspec.json.encode(event)
    assert len(encoded) <= MAX_EVENT_BYTES
    assert b"[cut]" in encoded
    assert part(event, "metadata")["sequence"] == 7


def test_only_long_texts_are_cut() -> None:
    unmapped = part(event_of(AuditAction.TOOL_FAILED, details={"note": "x" * 9_000, "other": "y" * 8_000}), "unmapped")

    assert unmapped["details"] == {"note": "x" * 8_192 + " [cut]", "other": "y" * 8_000}


def test_half_a_surrogate_pair_holds_nothing_back() -> None:
    assert part(event_of(AuditAction.AGENT_UPDATED, details={"note": "a\ud800"}), "unmapped")["details"] == {
        "note": "a?"
    }


def test_a_damaged_entry_is_sent_as_it_is() -> None:
    entry = ("aud_1", ORG, "unknown.action", None, None, "not a time", None, None, None, None, None, "no json")
    link = Link(number=1, event_id="aud_1", key_id="k", seal="", sealed_at=-1)

    event = OcsfEvents(redactor=Redactor(), product_version="1").of(StoredLink(link=link, entry=entry))

    assert event["time"] == 0
    assert part(event, "unmapped")["details"] == "no json"
