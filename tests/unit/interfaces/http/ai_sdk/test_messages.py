"""UI messages as a conversation, and the outcomes in them."""

import pytest

from domain.approvals.approval import PendingApproval
from domain.approvals.decision import CallDecision
from domain.ids import ApprovalId, ToolCallId
from domain.threads.message import FileContent, ImageContent, TextContent, ToolResultContent, ToolUse
from interfaces.http.ai_sdk.messages import conversation, settled
from interfaces.http.ai_sdk.schemas import Part, UiMessage
from tests.builders import START
from tests.refusals import refused

pytestmark = pytest.mark.requirement("X3")


def message(role: str, *parts: Part) -> UiMessage:
    return UiMessage.model_validate({"id": "m1", "role": role, "parts": list(parts)})


def text(told: str) -> Part:
    return {"type": "text", "text": told}


def call(identifier: str, state: str, **more: object) -> Part:
    return {"type": "dynamic-tool", "toolName": "look", "toolCallId": identifier, "state": state, **more}


def test_steps_become_replies_with_their_calls_and_results() -> None:
    ended = call("c1", "output-available", input={"a": 1}, output={"b": 2})
    answer = message(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm."},
        text("Looking."),
        ended,
        call("c2", "approval-requested"),
        {"type": "step-start"},
        text("Found."),
    )
    said = conversation([message("system", text("Be kind.")), message("user", text("Look")), answer, answer_to()])
    assert said.instructions == "Be kind."
    asked, used, result, found = said.history()
    assert asked.content == (TextContent(text="Look"),)
    assert [type(part) for part in used.content] == [TextContent, ToolUse]
    [outcome] = result.content
    assert isinstance(outcome, ToolResultContent)
    assert outcome.result == '{"b": 2}'
    assert found.content == (TextContent(text="Found."),)


def answer_to() -> UiMessage:
    return message("user", text("And?"))


def test_files_become_images_and_files_and_what_is_only_shown_is_left_out() -> None:
    said = conversation(
        [
            message(
                "user",
                {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBO"},
                {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk=", "filename": "a.txt"},
                {"type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf"},
                {"type": "data-weather", "data": {}},
                text("See"),
            )
        ]
    )
    assert said.input == (
        ImageContent(media_type="image/png", data="iVBO"),
        FileContent(media_type="text/plain", name="a.txt", data="aGk="),
        FileContent(media_type="application/pdf", url="https://example.com/a.pdf"),
        TextContent(text="See"),
    )


def test_outcomes_are_decisions_and_results() -> None:
    approval = {"id": "c1", "approved": True}
    given = settled(
        message(
            "assistant",
            call("c1", "approval-responded", approval=approval),
            call("c2", "approval-responded", approval={"approved": False, "reason": "No."}),
            call("c3", "output-error", errorText="It broke."),
            call("c4", "input-available"),
        )
    )
    assert given.decisions == {
        "c1": CallDecision(tool_call_id=ToolCallId("c1"), approve=True),
        "c2": CallDecision(tool_call_id=ToolCallId("c2"), approve=False, reason="No."),
    }
    assert [(name, found.result, found.is_error) for name, found in given.results.items()] == [
        ("c3", "It broke.", True)
    ]


@pytest.mark.parametrize("approval", [{"approved": "yes"}, {}, {"approved": 1}, {"approved": False, "reason": 1}])
def test_a_decision_of_another_form_is_refused(approval: dict[str, object]) -> None:
    given = settled(message("assistant", call("c1", "approval-responded", approval=approval)))
    waits = PendingApproval(approval_id=ApprovalId("apr_1"), expires_at=START, reason="By policy.")
    with refused("body_invalid"):
        given.fitting([ToolUse(id=ToolCallId("c1"), name="look", params={}, approval=waits)])
