"""`dragoman thread`, `tool`, `audit` and `key`."""

from datetime import UTC, datetime

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.asked_times import moment
from interfaces.cli.failures import BadUsage
from interfaces.http.api_keys.views import ApiKeyView, CreatedApiKeyView
from interfaces.http.audit.views import AuditEventView
from interfaces.http.threads.views import ListedThreadView, ThreadView
from interfaces.http.tools.views import ExplanationView, ToolView
from tests.unit.interfaces.cli.fake_service import FakeService, message_document, whole

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def audit_entry(identifier: str, action: str, at: str) -> JsonObject:
    return whole(
        AuditEventView,
        {"id": identifier, "action": action, "actor": "key_1", "resource": "run_1", "at": at, "duration_ms": 7},
    )


def page(*entries: JsonObject, more: str | None = None) -> JsonObject:
    return {"data": [*entries], "next_cursor": more}


def test_threads_are_listed_by_their_first_words() -> None:
    threads: list[JsonValue] = [
        whole(ListedThreadView, {"id": "thr_1", "opening": "Is the moon\n full tonight, and does it matter to tides?"}),
        whole(ListedThreadView, {"id": "thr_2", "opening": None}),
    ]
    service = FakeService().on("GET", "/v1/threads", {"data": threads, "next_cursor": None})
    listed = service.run("thread", "list").out
    assert "Is the moon full tonight, and does it m…" in listed
    assert "thr_2" in listed


def test_a_thread_is_a_readable_transcript() -> None:
    messages = page(
        message_document("user", {"type": "text", "text": "hi\nthere"}, {"type": "image", "media_type": "image/png"}),
        message_document("assistant", {"type": "text", "text": "hello"}),
    )
    thread = whole(ThreadView, {"id": "thr_1"})
    service = FakeService().on("GET", "/v1/threads/thr_1", thread).on("GET", "/v1/threads/thr_1/messages", messages)
    shown = service.run("thread", "show", "thr_1").out
    assert "user  2026-01-01T12:00:00.000000Z  run_1\n  hi\n  there\n  [image image/png]\n" in shown
    assert "  hello\n" in shown
    assert service.run("thread", "show", "thr_1", "--json").json == {**thread, "messages": messages["data"]}


def test_tools_are_listed_for_an_agent() -> None:
    tool = whole(
        ToolView,
        {
            "name": "mcp__t__now",
            "type": "mcp_tool",
            "description": "The\ntime",
            "server": "t",
            "health": "connected",
        },
    )
    service = FakeService().on("GET", "/v1/tools", page(tool))
    shown = service.run("tool", "list", "--agent", "guide").out
    assert shown.splitlines()[1].split() == ["mcp__t__now", "mcp_tool", "t", "connected", "The", "time"]
    assert service.requests[0].url.params["agent"] == "guide"


def test_audit_events_are_asked_for_by_action_and_time() -> None:
    service = FakeService().on("GET", "/v1/audit-events", page(audit_entry("aud_1", "run.started", "t"), more="c"))
    outcome = service.run(
        "audit", "list", "--action", "run.*", "--since", "2026-01-01T00:00:00Z", "--run", "run_1", "--limit", "1"
    )
    assert outcome.out.splitlines()[1].split() == ["t", "run.started", "key_1", "7", "ms", "run_1"]
    assert "--limit" in outcome.err
    request, *_ = service.requests
    assert dict(request.url.params) == {
        "since": "2026-01-01T00:00:00+00:00", "run_id": "run_1", "action": "run.*", "limit": "1",
    }  # fmt: skip


def test_several_actions_make_one_list_newest_first_without_repetition() -> None:
    events = {
        "tool.*": [
            audit_entry("aud_3", "tool.executed", "2026-01-03"),
            audit_entry("aud_1", "tool.executed", "2026-01-01"),
        ],
        "tool.executed": [audit_entry("aud_3", "tool.executed", "2026-01-03")],
        "run.started": [audit_entry("aud_2", "run.started", "2026-01-02")],
    }

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=page(*events[request.url.params["action"]]))

    actions = [argument for action in events for argument in ("--action", action)]
    document = FakeService().on("GET", "/v1/audit-events", answer).run("audit", "list", *actions, "--json").json
    data = document["data"]
    assert isinstance(data, list)
    assert [entry["id"] for entry in data if isinstance(entry, dict)] == ["aud_3", "aud_2", "aud_1"]
    assert document["next_cursor"] is None


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90s", "2026-01-02T11:58:30+00:00"),
        ("2h", "2026-01-02T10:00:00+00:00"),
        ("7d", "2025-12-26T12:00:00+00:00"),
        ("2026-01-01", "2026-01-01T00:00:00+00:00"),
        ("2026-01-01T10:00:00+02:00", "2026-01-01T10:00:00+02:00"),
    ],
)
def test_since_is_a_time_or_how_long_ago(text: str, time: str) -> None:
    assert moment(text, now=NOW) == time


@pytest.mark.parametrize("text", ["", "h", "2 hours", "-1d", "9999999h", "999999d"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(BadUsage):
        moment(text, now=NOW)


@pytest.mark.requirement("C6")
def test_a_new_keys_token_is_alone_on_stdout() -> None:
    key = whole(
        CreatedApiKeyView, {"id": "key_1", "name": "ci", "role": "runner", "created_at": "t", "token": "dgm_secret"}
    )
    service = FakeService().on("POST", "/v1/api-keys", httpx.Response(201, json=key))
    outcome = service.run("key", "create", "ci")
    assert outcome.out == "dgm_secret\n"
    assert "dgm_secret" not in outcome.err
    assert service.sent("POST", "/v1/api-keys") == [{"name": "ci", "role": "runner"}]
    assert service.run("key", "create", "ci", "--json").json == key


def test_keys_are_listed_and_revoked() -> None:
    key = whole(
        ApiKeyView,
        {
            "id": "key_1",
            "name": "ci",
            "role": "admin",
            "platform": True,
            "created_at": "t",
            "revoked_at": "u",
        },
    )
    ended: JsonObject = {
        "id": "key_1",
        "cancelled_runs": 2,
        "cancelled_workflow_runs": 0,
        "revoked_gateway_sessions": 1,
    }
    nothing: JsonObject = {**ended, "cancelled_runs": 0, "revoked_gateway_sessions": 0}
    service = FakeService().on("GET", "/v1/api-keys", page(key)).on("DELETE", "/v1/api-keys/key_1", ended, nothing)
    assert service.run("key", "list").out.splitlines()[1].split() == [
        *("key_1", "ci", "admin", "yes", "never"),
        *("revoked", "u", "t"),
    ]
    revoked = service.run("key", "revoke", "key_1")
    assert (revoked.exit_code, revoked.out) == (0, "")
    assert revoked.err.strip() == "Revoked key_1. Ended with it: 2 runs, 1 gateway session."
    assert "Nothing that it started" in service.run("key", "revoke", "key_1").err
    assert service.run("key", "revoke", "key_2").exit_code == 1


def test_an_explanation_says_what_becomes_of_a_tools_calls_and_what_each_layer_says() -> None:
    explained = whole(
        ExplanationView,
        {
            "name": "mcp__t__now",
            "agent": "guide",
            "agent_version": 3,
            "standing": "asked_for",
            "reasons": ["Requires approval: a person decides about each call, by the organization's rule mcp__t__*."],
            "layers": [
                {
                    "layer": "organization",
                    "in_allowlist": True,
                    "rules": {"mcp__t__*": {"decision": "require_approval"}},
                },
                {"layer": "agent", "in_allowlist": None, "rules": {}},
            ],
        },
    )
    service = FakeService().on("GET", "/v1/tools/mcp__t__now/explain", explained)
    shown = service.run("tool", "explain", "mcp__t__now", "--agent", "guide").out.splitlines()
    assert shown[0] == "mcp__t__now, for guide (version 3): requires approval"
    assert shown[1].strip().startswith("Requires approval: a person decides")
    assert shown[3].split() == ["organization", "has", "it", "mcp__t__*", '{"decision":', '"require_approval"}']
    assert shown[4].split() == ["agent", "none", "none"]
    assert service.run("tool", "explain", "mcp__t__now", "--agent", "guide", "--json").json == explained
    person = ("--as", "usr_ann", "--at", "2026-11-27T19:00:00+01:00")
    service.run("tool", "explain", "mcp__t__now", "--agent", "guide", *person)
    assert dict(service.requests[-1].url.params) == {
        "agent": "guide",
        "person": "usr_ann",
        "at": "2026-11-27T19:00:00+01:00",
    }


@pytest.mark.requirement("C4")
def test_a_thread_in_quarantine_says_why_and_is_released() -> None:
    quarantine: JsonObject = {"run_id": "run_1", "canary_id": "vault", "at": "2026-01-01T12:00:00Z"}
    released = whole(ThreadView, {"id": "thr_1", "quarantine": None})
    service = (
        FakeService()
        .on("GET", "/v1/threads/thr_1", whole(ThreadView, {"id": "thr_1", "quarantine": quarantine}))
        .on("GET", "/v1/threads/thr_1/messages", {"data": [], "next_cursor": None})
        .on("POST", "/v1/threads/thr_1/release", released)
    )
    shown = service.run("thread", "show", "thr_1")
    assert "run_1 was halted by the canary token vault" in " ".join((shown.out + shown.err).split())
    assert "is released" in service.run("thread", "release", "thr_1").err
    assert service.run("thread", "release", "thr_1", "--json").json == released
