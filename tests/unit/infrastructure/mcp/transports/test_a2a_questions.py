"""What a remote task asks: questions to people, and their answers."""

from typing import Any

import pytest

from infrastructure.mcp.connections.input_requests import read_input_required
from infrastructure.mcp.transports.a2a_questions import answer_of, mark_of, requests_of

pytestmark = pytest.mark.requirement("X5")

PENDING: list[dict[str, Any]] = [
    {"id": "c1:a1", "kind": "approval", "tool": "pay", "arguments": {"eur": 5}, "reason": "Large."},
    {"id": "c2:f1", "kind": "form", "tool": "t", "arguments": {}, "message": "Which?", "schema": {"type": "object"}},
    {"id": "c3:p1", "kind": "page", "tool": "t", "arguments": {}, "message": "Go.", "url": "https://example.com/a"},
    {"id": "c4", "kind": "result", "tool": "look", "arguments": {"at": "it"}},
]


def task(state: str, *parts: dict[str, Any], message_id: str = "m1") -> dict[str, Any]:
    message = {"messageId": message_id, "role": "ROLE_AGENT", "parts": list(parts)}
    return {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}", "message": message}}


def asked(given: dict[str, Any]) -> list[tuple[str, object]]:
    """The questions as a server's are read: the message, and the schema or the address."""
    read = read_input_required({"inputRequests": requests_of(given)})
    return [(question.message, question.schema or question.url) for question in read.questions]


def accepted(**content: object) -> dict[str, object]:
    return {"action": "accept", "content": content}


def test_an_agent_that_says_only_a_text_is_answered_by_one() -> None:
    waits = task("INPUT_REQUIRED", {"text": "Which city?"})
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    assert asked(waits) == [("Which city?", schema)]
    assert answer_of(waits, {"answer": accepted(answer="Lisbon")}) == [{"text": "Lisbon"}]
    assert answer_of(waits, {"answer": {"action": "decline"}}) is None
    assert answer_of(waits, {}) is None


def test_an_agent_that_names_what_it_waits_for_is_answered_by_name() -> None:
    waits = task("INPUT_REQUIRED", {"text": "all of it"}, {"data": {"pending": PENDING}})
    assert [question for question, _ in asked(waits)] == [
        'Approve the call pay({"eur": 5})? Large.',
        "Which?",
        "Go.",
        'Give the result of look({"at": "it"}).',
    ]
    given = {"0": accepted(approved=True), "1": accepted(n=1), "2": {"action": "accept"}, "3": accepted(result="seen")}
    assert answer_of(waits, given) == [
        {"data": {"id": "c1:a1", "approved": True}},
        {"data": {"id": "c2:f1", "action": "accept", "content": {"n": 1}}},
        {"data": {"id": "c3:p1", "action": "accept"}},
        {"data": {"id": "c4", "result": "seen"}},
    ]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "response", [{"action": "decline"}, accepted(approved=False), accepted(), accepted(approved=1)]
)
def test_only_a_person_who_says_so_approves(response: dict[str, object]) -> None:
    waits = task("INPUT_REQUIRED", {"data": {"pending": PENDING[:1]}})
    [part] = answer_of(waits, {"0": response}) or []
    assert part["data"]["approved"] is False


def test_a_page_that_has_to_be_visited_is_shown_and_needs_no_message() -> None:
    waits = task("AUTH_REQUIRED", {"text": "Visit https://example.com/consent?a=1 (soon)."})
    assert asked(waits) == [
        ("Visit https://example.com/consent?a=1 (soon).", "https://example.com/consent?a=1"),
    ]
    assert answer_of(waits, {"answer": {"action": "accept"}}) == []
    nowhere = task("AUTH_REQUIRED", {"text": "Ask your admin."})
    assert asked(nowhere) == [("Ask your admin.\nAccept once this is done.", {"type": "object", "properties": {}})]


@pytest.mark.parametrize("wrong", [[{"id": 1, "kind": "form"}], [{"id": "a", "kind": "other"}], "x", None])
def test_what_names_nothing_known_is_asked_as_text(wrong: object) -> None:
    waits = task("INPUT_REQUIRED", {"text": "Which?"}, {"data": {"pending": wrong}})
    assert [question for question, _ in asked(waits)] == ["Which?"]


def test_a_later_question_has_another_mark() -> None:
    first = task("INPUT_REQUIRED", {"text": "a"})
    assert mark_of(first) == mark_of({**first, "artifacts": []}) != mark_of(task("INPUT_REQUIRED", message_id="m2"))
