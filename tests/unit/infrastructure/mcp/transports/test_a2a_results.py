"""A remote A2A agent as a tool: its card as a definition, its tasks as results."""

from base64 import b64decode
from typing import Any

import pytest

from application.mcp.ports import McpFailureKind
from infrastructure.mcp.faults import not_reached
from infrastructure.mcp.transports.a2a_results import (
    fault_after_message,
    message_of,
    result_of_message,
    result_of_task,
    tool_of,
)

pytestmark = pytest.mark.requirement("X5")

CARD: dict[str, Any] = {
    "name": "Echo",
    "description": "Repeats.",
    "skills": [{"name": "Say", "description": "Says it again."}],
    "version": "1",
}


def task(state: str, **more: object) -> dict[str, object]:
    return {"id": "t1", "contextId": "c1", "status": {"state": f"TASK_STATE_{state}"}, **more}


def texts(result: dict[str, object]) -> list[object]:
    content = result["content"]
    assert isinstance(content, list)
    return [part.get("text") for part in content]


def test_a_card_is_one_tool_that_names_its_skills() -> None:
    tool = tool_of(CARD)
    assert tool["description"] == "Gives the agent Echo a task: Repeats.\n- Say: Says it again."


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("change", [{"version": "2"}, {"supportedInterfaces": [{}]}, {"securitySchemes": {"a": {}}}])
def test_any_change_of_a_card_changes_the_tool(change: dict[str, Any]) -> None:
    assert tool_of(CARD | change) != tool_of(CARD)


def test_an_odd_card_is_a_tool_all_the_same() -> None:
    odd = tool_of({"name": 5, "skills": [7, {"name": None}], "description": "x" * 9_000})
    assert len(str(odd["description"])) < 1_200


def test_arguments_become_a_message() -> None:
    given = {"message": "hi", "data": {"n": 1}, "context_id": "c1", "task_id": "t1"}
    message = message_of(given, "m1")["message"]
    assert message == {
        "messageId": "m1",
        "role": "ROLE_USER",
        "parts": [{"text": "hi"}, {"data": {"n": 1}}],
        "contextId": "c1",
        "taskId": "t1",
    }


def test_parts_of_artifacts_are_contents() -> None:
    parts = [
        {"text": "a"},
        {"data": {"n": 1}},
        {"raw": "aVZCTw==", "mediaType": "image/png"},
        {"raw": "aVZCTw==", "filename": "a.pdf", "mediaType": "application/pdf"},
        {"raw": "YTti", "filename": "rows.csv"},
        {"raw": "-_8=", "mediaType": "image/png"},
        {"raw": "?", "mediaType": "text/plain"},
        {"url": "https://example.com/a", "mediaType": "text/plain"},
        {},
        5,
    ]
    result = result_of_task(task("COMPLETED", artifacts=[{"parts": parts}]))
    content = result["content"]
    assert isinstance(content, list)
    kinds = ["text", "text", "image", "resource", "text", "image", "resource", "resource_link", "text"]
    assert [part["type"] for part in content] == kinds
    assert (content[4]["text"], content[5]["data"]) == ("rows.csv:\na;b", "+/8=")
    assert content[-1]["text"] == "task_id: t1, context_id: c1"
    assert texts(result_of_message({"parts": [{"text": "hi"}]})) == ["hi"]


@pytest.mark.parametrize("raw", ["YQ==", "YQ", "YWI=", "YWI", "YWJj"])
def test_bytes_are_read_with_and_without_padding(raw: str) -> None:
    parts = [{"raw": raw, "filename": "a.txt"}, {"raw": raw, "mediaType": "image/png"}]
    content = result_of_message({"parts": parts})["content"]
    assert isinstance(content, list)
    padded = raw + "=" * (-len(raw) % 4)
    assert (content[0]["text"], content[1]["data"]) == (f"a.txt:\n{b64decode(padded).decode()}", padded)


def test_a_task_that_did_not_complete_is_an_error_and_one_that_waits_says_how_to_answer() -> None:
    failed = task("FAILED")
    failed["status"] = {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "No luck."}]}}
    assert (texts(result_of_task(failed)), result_of_task(failed)["isError"]) == (
        ["The task ended: failed.", "No luck."],
        True,
    )
    for state in ("INPUT_REQUIRED", "AUTH_REQUIRED"):
        waits = result_of_task(task(state))
        assert (waits["isError"], "task_id: t1" in str(waits["content"])) == (False, True)


def test_a_fault_after_the_message_was_answered_never_says_that_nothing_was_executed() -> None:
    fault = fault_after_message(not_reached("refused"), "t")
    assert (fault.not_executed, fault.kind) == (False, McpFailureKind.CONNECTION_LOST)
    assert "the task t," in fault.detail
    assert fault.for_model is not None
    assert "the task t," in fault.for_model
    assert "refused" not in fault.for_model
