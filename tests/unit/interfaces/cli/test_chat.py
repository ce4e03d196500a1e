"""`dragoman chat`: turns on one thread, and what their runs ask in between."""

from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from tests.unit.interfaces.cli.fake_service import (
    FakeService,
    agent_document,
    event,
    problem,
    run_document,
    stream_of,
)

APPROVAL: JsonObject = {
    "type": "tool_use", "id": "call_1", "name": "send", "params": {"to": "ada"},
    "approval_id": "apr_1", "expires_at": "2026-01-02T12:00:00Z", "reason": "the policy says so",
}  # fmt: skip
FORM: JsonObject = {
    "type": "tool_use", "id": "call_2", "name": "paint", "params": {},
    "elicitation": {"message": "Which colour?", "schema": {"properties": {"colour": {}}}},
}  # fmt: skip


def talking(*pending: JsonObject) -> FakeService:
    """A service whose first run waits for these calls, and whose resumed or next run answers."""
    waiting, done = run_document("requires_action", pending=[*pending]), run_document(output="Done.")
    answers: list[JsonValue] = [{"run": run, "messages": []} for run in ([waiting] if pending else []) + [done]]
    service = FakeService().on("GET", "/v1/agents/guide", agent_document())
    service.on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
    return (
        service.on("POST", "/v1/threads/thr_1/runs", httpx.Response(202, json=run_document("queued")))
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
        .on("GET", "/v1/runs/run_1/events", {"data": [event(1, "run.queued")], "next_cursor": None})
        .on("GET", "/v1/runs/run_1/stream", stream_of(event(1, "run.queued"), end="completed"))
        .on("GET", "/v1/runs/run_1/wait", *answers)
    )


def test_messages_continue_one_thread() -> None:
    service = talking()
    outcome = service.run("chat", "--agent", "guide", typed=["hello", "", "and now?", "/quit", "never read"])
    assert outcome.exit_code == 0
    assert outcome.out == "Done.\nDone.\n"
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": "hello"}]
    assert service.sent("POST", "/v1/threads/thr_1/runs") == [{"agent": "guide", "input": "and now?"}]
    assert "dragoman chat --agent guide --thread thr_1" in outcome.err


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        (["what?", "y"], {"decision": "approve"}),
        (["n", "Not today."], {"decision": "deny", "reason": "Not today."}),
        (["no", ""], {"decision": "deny"}),
        (["e", "oops", "e", '{"to": "bob"}'], {"decision": "approve", "arguments": {"to": "bob"}}),
    ],
)
def test_a_call_that_requires_approval_is_decided_in_the_chat(typed: list[str], decision: JsonObject) -> None:
    service = talking(APPROVAL)
    outcome = service.run("chat", "--agent", "guide", typed=["write", *typed])
    assert service.sent("POST", "/v1/runs/run_1/resume") == [{"approvals": [{"tool_call_id": "call_1", **decision}]}]
    assert 'send {"to": "ada"}' in outcome.err
    assert outcome.out == "Done.\n"


def test_a_servers_question_is_answered_in_the_chat() -> None:
    service = talking(FORM)
    service.run("chat", "--agent", "guide", typed=["paint", "red", '{"colour": "red"}'])
    [body] = service.sent("POST", "/v1/runs/run_1/resume")
    assert body == {
        "tool_results": [{"tool_call_id": "call_2", "result": {"action": "accept", "content": {"colour": "red"}}}]
    }


def test_who_leaves_at_a_decision_leaves_the_run_waiting_and_is_told_so() -> None:
    service = talking(APPROVAL)
    outcome = service.run("chat", "--agent", "guide", typed=["write"])
    assert service.sent("POST", "/v1/runs/run_1/resume") == []
    assert "dragoman run cancel run_1" in outcome.err
    assert outcome.exit_code == 0


def test_an_agent_that_there_is_not_ends_the_chat_before_a_message_is_read() -> None:
    missing = problem(404, "agent_not_found", "There is no agent 'giude'.")
    service = FakeService().on("GET", "/v1/agents/giude", missing)
    outcome = service.run("chat", "--agent", "giude", typed=["hello"])
    assert outcome.exit_code == 1
    assert "dragoman agent list" in outcome.err
    assert service.sent("POST", "/v1/runs") == []


@pytest.mark.requirement("U4")
def test_a_guessed_command_costs_no_run_and_is_told_what_there_is() -> None:
    service = talking()
    outcome = service.run(
        "chat", "--agent", "guide", typed=["/help", "/attach", " /help", "/etc/hosts?", "/exit", "on"]
    )
    assert outcome.exit_code == 0
    assert outcome.err.count("Not sent. /attach FILE") == 2
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": " /help"}]
    assert service.sent("POST", "/v1/threads/thr_1/runs") == [{"agent": "guide", "input": "/etc/hosts?"}]


def test_a_message_that_is_rejected_ends_no_chat() -> None:
    service = talking()
    service.answers["POST", "/v1/runs"].insert(0, problem(429, "limit", "Too many runs."))
    outcome = service.run("chat", "--agent", "guide", typed=["hello", "again"])
    assert "Too many runs." in outcome.err
    assert outcome.out == "Done.\n"


@pytest.mark.requirement("H5")
def test_files_go_with_the_next_message_alone(tmp_path: Path) -> None:
    report = tmp_path / "a report.pdf"
    report.write_bytes(b"%PDF-1.7")
    service = talking()
    typed = [f"/attach {report}", f"/attach {tmp_path / 'missing'}", "What is in it?", "Thanks."]
    outcome = service.run("chat", "--agent", "guide", typed=typed)
    file = {"type": "file", "media_type": "application/pdf", "name": "a report.pdf", "data": "JVBERi0xLjc="}
    parts = [{"type": "text", "text": "What is in it?"}, file]
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": parts}]
    assert service.sent("POST", "/v1/threads/thr_1/runs") == [{"agent": "guide", "input": "Thanks."}]
    assert "a report.pdf goes with the next message." in outcome.err
    assert "missing cannot be read" in outcome.err
