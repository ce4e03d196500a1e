"""Audit entries of runs and calls: canonical digests, ids that repeat with their cause, and what
each says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.audit.event import AuditAction
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.runs.audit_trail import run_ended_audit, run_started_audit, tool_call_audit
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunError, RunStatus
from domain.tools.result import ToolResult
from tests.builders import AGENT, KEY, RUN, SERVER, THREAD, a_run, a_run_id, a_settled_call, a_tool_call, after

JSON_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=5)


def reversed_keys(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("arguments", "digest"),
    [
        ({}, "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        ({"b": [1, "ü"], "a": None}, "sha256:6bafd57c7869b3aca54e576a5157b40cc195c8486124cab93d52f1b59556838e"),
    ],
)
def test_the_digest_of_arguments_stays_the_same_from_release_to_release(arguments: JsonObject, digest: str) -> None:
    assert canonical_digest(arguments) == digest


@pytest.mark.requirement("C5")
@given(arguments=OBJECTS)
def test_the_order_of_keys_does_not_matter_to_the_digest(arguments: JsonObject) -> None:
    turned = reversed_keys(arguments)
    assert isinstance(turned, dict)
    assert canonical_digest(turned) == canonical_digest(arguments)


@pytest.mark.requirement("C5")
@given(one=OBJECTS, other=OBJECTS)
def test_different_arguments_have_different_digests(one: JsonObject, other: JsonObject) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical_digest(one) == canonical_digest(other)) is same


@pytest.mark.requirement("C5")
def test_arguments_that_are_not_clean_unicode_have_a_digest_too() -> None:
    assert canonical_digest({"text": "\ud800"}) != canonical_digest({"text": "\ud801"})


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("result", "action", "details"),
    [
        (ToolResult.succeeded("ok"), AuditAction.TOOL_EXECUTED, {}),
        (ToolResult.failed("mcp_error", "no"), AuditAction.TOOL_FAILED, {"error": "mcp_error"}),
        (ToolResult.unknown("?"), AuditAction.TOOL_FAILED, {"error": "outcome_unknown"}),
        (ToolResult.blocked("denied", "no"), AuditAction.TOOL_BLOCKED, {"error": "denied"}),
    ],
)
def test_a_settled_call_is_recorded_with_who_what_where_and_how_long_but_not_its_arguments(
    result: ToolResult, action: AuditAction, details: JsonObject
) -> None:
    run = a_run(requested_by=KEY)
    call = a_tool_call(name="mcp__files__read", server_id=SERVER, params={"path": "/s3cret"})
    entry = tool_call_audit(run, a_settled_call(call, result, duration_ms=17, at=after(3)))
    assert (entry.action, entry.actor, entry.organization_id, entry.resource) == (
        action,
        KEY,
        run.organization_id,
        call.id,
    )
    assert (entry.run_id, entry.tool, entry.server_id, entry.duration_ms, entry.at) == (
        RUN,
        "mcp__files__read",
        SERVER,
        17,
        after(3),
    )
    assert entry.arguments_digest == canonical_digest({"path": "/s3cret"})
    assert entry.details == details
    assert "s3cret" not in repr(entry)


def ended(status: RunStatus) -> Run:
    return a_run(status=RunStatus.IN_PROGRESS).ended(
        status,
        at=after(9),
        error=RunError(code="model_auth", detail="The key is wrong.") if status is RunStatus.FAILED else None,
        incomplete_reason=IncompleteReason.MAX_TURNS if status is RunStatus.INCOMPLETE else None,
    )


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("status", "action", "details"),
    [
        (RunStatus.COMPLETED, AuditAction.RUN_COMPLETED, {"status": "completed"}),
        (RunStatus.INCOMPLETE, AuditAction.RUN_COMPLETED, {"status": "incomplete", "reason": "max_turns"}),
        (RunStatus.FAILED, AuditAction.RUN_FAILED, {"status": "failed", "error": "model_auth"}),
        (RunStatus.HALTED, AuditAction.RUN_FAILED, {"status": "halted"}),
        (RunStatus.CANCELLED, AuditAction.RUN_CANCELLED, {"status": "cancelled"}),
    ],
)
def test_each_ending_of_a_run_is_recorded_with_its_status_and_reason(
    status: RunStatus, action: AuditAction, details: JsonObject
) -> None:
    entry = run_ended_audit(ended(status), at=after(9), actor=KEY)
    assert (entry.action, entry.actor, entry.resource, entry.run_id, entry.at) == (action, KEY, RUN, RUN, after(9))
    assert entry.details == {"agent_id": AGENT, "thread_id": THREAD, **details}


@pytest.mark.requirement("C5")
def test_a_run_started_by_nobodys_key_was_started_by_the_system() -> None:
    assert run_started_audit(a_run(requested_by=KEY), at=after(1)).actor == KEY
    assert run_started_audit(a_run(), at=after(1)).actor == "system"


@pytest.mark.requirement("C5", "E3")
def test_an_entry_of_a_repeated_step_has_the_same_id_and_no_other_has() -> None:
    call, other = a_tool_call(0), a_tool_call(1)
    run = ended(RunStatus.COMPLETED)
    entries = [
        run_started_audit(run, at=after(1)),
        run_started_audit(a_run(a_run_id(2)), at=after(1)),
        run_ended_audit(run, at=after(9)),
        tool_call_audit(run, a_settled_call(call)),
        tool_call_audit(run, a_settled_call(other)),
    ]
    assert len({entry.id for entry in entries}) == len(entries)
    assert all(entry.id.startswith("aud_") for entry in entries)
    assert run_started_audit(run, at=after(50)).id == entries[0].id
    assert tool_call_audit(run, a_settled_call(call, at=after(50))).id == entries[3].id
