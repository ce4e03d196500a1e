"""Messages of AG-UI as a conversation and back, and outcomes of calls in an input."""

from dataclasses import replace

import pytest

from domain.approvals.approval import PendingApproval
from domain.approvals.decision import CallDecision
from domain.ids import ApprovalId, MessageId, ToolCallId
from domain.mcp.elicitation import Elicitation
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
)
from interfaces.http.ag_ui.messages import conversation, message_views, settled
from interfaces.http.ag_ui.schemas import AgUiMessage, RunAgentInputBody
from tests.builders import START, THREAD
from tests.refusals import refused

pytestmark = pytest.mark.requirement("X4")

CALL: dict[str, object] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}


def message(role: str, **more: object) -> AgUiMessage:
    return AgUiMessage.model_validate({"id": "m1", "role": role, **more})


def the_input(*messages: AgUiMessage, **more: object) -> RunAgentInputBody:
    body = RunAgentInputBody.model_validate({"threadId": "t1", "runId": "r1", "messages": [], **more})
    return body.model_copy(update={"messages": list(messages)})


def stored(role: Role, *content: Content) -> Message:
    return Message(id=MessageId("msg_1"), thread_id=THREAD, run_id=None, role=role, content=content, created_at=START)


def test_messages_become_history_and_input_and_what_is_only_shown_is_left_out() -> None:
    document = {"type": "document", "source": {"type": "url", "value": "https://example.com/a.pdf"}}
    said = conversation(
        [
            message("developer", content="Be kind."),
            message("user", content="Look"),
            message("reasoning", content="Hm."),
            message("assistant", toolCalls=[CALL]),
            message("tool", toolCallId="c1", content="found"),
            message("assistant", content="Found."),
            message("user", content=[{"type": "text", "text": "And?"}, document]),
        ]
    )
    assert said.instructions == "Be kind."
    assert [prior.role for prior in said.history()] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    url = "https://example.com/a.pdf"
    assert said.input == (TextContent(text="And?"), FileContent(media_type="application/pdf", url=url))


def test_a_call_without_a_result_is_left_out_of_the_history() -> None:
    lost = {**CALL, "id": "c2"}
    said = conversation(
        [
            message("user", content="Look"),
            message("assistant", toolCalls=[CALL, lost]),
            message("tool", toolCallId="c1", content="found"),
            message("assistant", content="", toolCalls=[lost]),
            message("user", content="And?"),
        ]
    )
    _, asked, result = said.history()
    assert [use.name for use in asked.content if isinstance(use, ToolUse)] == ["look"]
    assert result.role is Role.TOOL


def test_results_at_the_end_and_answers_to_interrupts_are_outcomes() -> None:
    resume = [
        {"interruptId": "c3:apr_1", "status": "resolved", "payload": {"approved": True, "arguments": {"a": 2}}},
        {"interruptId": "c4:apr_2", "status": "resolved", "payload": {"approved": False, "reason": "No."}},
        {"interruptId": "c5:colour", "status": "cancelled"},
    ]
    given = settled(
        the_input(
            message("user", content="go"),
            message("tool", toolCallId="c1", content=[{"type": "text", "text": "sun"}]),
            message("tool", toolCallId="c2", content="", error="It broke."),
            resume=resume,
        )
    )
    assert given is not None
    assert {name: (found.result, found.is_error) for name, found in given.results.items()} == {
        "c1": ("sun", False),
        "c2": ("It broke.", True),
        "c3:apr_1": ({"action": "accept", "content": {"approved": True, "arguments": {"a": 2}}}, False),
        "c4:apr_2": ({"action": "accept", "content": {"approved": False, "reason": "No."}}, False),
        "c5:colour": ({"action": "cancel"}, False),
    }
    assert list(given.decisions.values()) == [
        CallDecision(tool_call_id=ToolCallId("c3"), approve=True, arguments={"a": 2}),
        CallDecision(tool_call_id=ToolCallId("c4"), approve=False, reason="No."),
        CallDecision(tool_call_id=ToolCallId("c5"), approve=False),
    ]
    assert settled(the_input(message("user", content="go"))) is None


@pytest.mark.parametrize(
    "payload",
    [
        {"approved": "true"},
        {"approved": 1},
        {},
        None,
        True,
        {"approved": True, "arguments": '{"a": 2}'},
        {"approved": True, "arguments": []},
        {"approved": False, "reason": 1},
    ],
)
def test_a_decision_of_another_form_is_refused_and_a_form_has_any_fields(payload: object) -> None:
    given = settled(the_input(resume=[{"interruptId": "c1:q", "status": "resolved", "payload": payload}]))
    assert given is not None
    call = ToolUse(id=ToolCallId("c1"), name="look", params={})
    approval = PendingApproval(approval_id=ApprovalId("q"), expires_at=START, reason="By policy.")
    with refused("body_invalid"):
        given.fitting([replace(call, approval=approval)])
    asked = replace(call, elicitation=Elicitation(request_id="q", message="Which?", schema={"type": "object"}))
    assert [found.tool_call_id for found in given.fitting([asked])[0]] == ["c1"]


def test_stored_messages_are_those_of_the_protocol() -> None:
    use = ToolUse(id=ToolCallId("call_1"), name="look", params={"a": 1})
    failed = ToolResultContent(tool_id=use.id, tool_name="look", result="no", is_error=True)
    audio = FileContent(media_type="audio/wav", data="UklG")
    picture = ImageContent(media_type="image/png", url="https://example.com/a.png")
    views = message_views(
        [
            stored(Role.USER, TextContent(text="See"), picture, audio),
            stored(Role.ASSISTANT, TextContent(text="Looking."), use),
            stored(Role.TOOL, failed, replace(failed, result="yes", is_error=False)),
        ]
    )
    url = {"type": "url", "value": "https://example.com/a.png", "mimeType": "image/png"}
    data = {"type": "data", "value": "UklG", "mimeType": "audio/wav"}
    parts = [{"type": "text", "text": "See"}, {"type": "image", "source": url}, {"type": "audio", "source": data}]
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}]
    result = {"id": "call_1_result", "role": "tool", "toolCallId": "call_1"}
    assert views == [
        {"id": "msg_1", "role": "user", "content": parts},
        {"id": "msg_1", "role": "assistant", "content": "Looking.", "toolCalls": calls},
        {**result, "content": "no", "error": "no"},
        {**result, "content": "yes"},
    ]
