"""`dragoman approval`, and approvals among what a run waits for."""

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.approvals.views import ApprovalView
from tests.unit.interfaces.cli.fake_service import FakeService, run_document, stream_of, whole

APPROVAL = whole(
    ApprovalView,
    {
        "id": "apr_1",
        "state": "pending",
        "tool": "mcp__s__send",
        "arguments": {"to": "a@b"},
        "edited_arguments": None,
        "expires_at": "2026-01-02T12:00:00.000000Z",
        "run_id": "run_1",
    },
)
DECIDE = "/v1/approvals/apr_1"


def test_approvals_are_listed_by_state() -> None:
    service = FakeService().on("GET", "/v1/approvals", {"data": [APPROVAL], "next_cursor": None})
    outcome = service.run("approval", "list", "--state", "pending", "--run", "run_1")
    assert outcome.exit_code == 0
    assert "apr_1" in outcome.out
    assert '{"to": "a@b"}' in outcome.out
    query = service.requests[0].url.params
    assert (query["state"], query["run_id"]) == ("pending", "run_1")
    listing = FakeService().on("GET", "/v1/approvals", {"data": [APPROVAL], "next_cursor": None})
    assert listing.run("approval", "list", "--json").json["data"] == [APPROVAL]


@pytest.mark.requirement("C3")
def test_an_approval_is_decided_with_other_arguments_and_a_reason() -> None:
    decided: JsonObject = {**APPROVAL, "state": "approved", "edited_arguments": {"to": "c@d"}}
    service = FakeService().on("POST", DECIDE, decided)
    outcome = service.run(
        "approval", "decide", "apr_1", "--approve", "--arguments", '{"to": "c@d"}', "--reason", "Fine."
    )
    assert outcome.exit_code == 0
    assert service.sent("POST", DECIDE) == [{"decision": "approve", "arguments": {"to": "c@d"}, "reason": "Fine."}]
    assert 'apr_1 is approved: mcp__s__send {"to": "c@d"}' in outcome.err
    assert "dragoman run show run_1" in outcome.err


def test_a_denial_is_sent_and_shown_as_json() -> None:
    service = FakeService().on("POST", DECIDE, {**APPROVAL, "state": "denied"})
    assert service.run("approval", "decide", "apr_1", "--deny", "--json").json["state"] == "denied"
    assert service.sent("POST", DECIDE) == [{"decision": "deny"}]


@pytest.mark.parametrize(
    "arguments",
    [
        ("decide", "apr_1"),
        ("decide", "apr_1", "--approve", "--deny"),
        ("decide", "apr_1", "--approve", "--arguments", "[1]"),
        ("decide", "apr_1", "--approve", "--arguments", "{"),
        ("decide", "apr_1", "--deny", "--arguments", "{}"),
        ("list", "--state", "undecided"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(arguments: tuple[str, ...]) -> None:
    service = FakeService()
    outcome = service.run("approval", *arguments)
    assert (outcome.exit_code, outcome.out, service.requests) == (2, "", [])
    assert len(outcome.err.splitlines()) == 1


PENDING: JsonObject = {
    "type": "tool_use",
    "id": "call_1",
    "name": "mcp__s__send",
    "params": {"to": "a@b"},
    "approval_id": "apr_1",
    "expires_at": "2026-01-02T12:00:00.000000Z",
    "reason": "The policy of the agent\x1b[2J requires an approval.",
}


@pytest.mark.requirement("C3")
def test_a_run_that_waits_shows_what_is_to_be_approved_and_how() -> None:
    run = run_document("requires_action", pending=[PENDING])
    service = (
        FakeService()
        .on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
        .on("GET", "/v1/runs/run_1/stream", stream_of(end="requires_action"))
        .on("GET", "/v1/runs/run_1", run)
        .on("GET", "/v1/runs/run_1/wait", {"run": run, "messages": []})
    )
    outcome = service.run("run", "Send it.", "--agent", "guide")
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert 'mcp__s__send {"to": "a@b"}' in outcome.err
    assert "needs an approval until 2026-01-02T12:00:00.000000Z" in outcome.err
    assert "dragoman approval decide apr_1 --approve" in outcome.err
    assert "dragoman run resume run_1 --approve call_1" in outcome.err
    assert "\x1b" not in outcome.err


@pytest.mark.requirement("C3")
def test_a_run_is_resumed_with_decisions() -> None:
    ended = run_document(output="Sent.")
    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1/events", {"data": [], "next_cursor": None})
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
        .on("GET", "/v1/runs/run_1/stream", stream_of(end="completed"))
        .on("GET", "/v1/runs/run_1", ended)
        .on("GET", "/v1/runs/run_1/wait", {"run": ended, "messages": []})
    )
    outcome = service.run("run", "resume", "run_1", "--approve", "call_1", "--approve", "call_2", "--deny", "call_3")
    assert (outcome.exit_code, outcome.out) == (0, "Sent.\n")
    assert service.sent("POST", "/v1/runs/run_1/resume") == [
        {
            "approvals": [
                {"tool_call_id": "call_1", "decision": "approve"},
                {"tool_call_id": "call_2", "decision": "approve"},
                {"tool_call_id": "call_3", "decision": "deny"},
            ]
        }
    ]
