"""What is sent on the chat-completions wire."""

import json
from dataclasses import replace
from typing import Any

import pytest

from application.models.ports import ModelRequest, ToolChoice
from domain.model_providers.provider import EchoReasoning
from domain.threads.message import ImageContent, Message, Role, TextContent, ToolUse
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.chat_echo import ChatEcho
from infrastructure.llm.model_inputs import NOTHING, ModelInput
from infrastructure.llm.openai_wire import NEUTRALLY, ChatDialect, OpenAIWire
from infrastructure.llm.wire_cache import Form
from tests.builders import RUN, a_message, a_tool
from tests.unit.llm.model_requests import (
    PIXEL,
    SEES,
    a_request,
    a_result,
    a_tool_message,
    a_use,
    a_user_message,
    an_assistant_message,
)
from tests.unit.llm.sdk_types import valid_chat_body

LOOP, ALWAYS, NEVER = (ChatEcho(reasoning=reasoning) for reasoning in EchoReasoning)


def a_wire(*, takes: frozenset[ModelInput] = SEES) -> OpenAIWire:
    return OpenAIWire(takes=takes, dialect=ChatDialect())


def sent(request: ModelRequest, wire: OpenAIWire | None = None, *, echo: ChatEcho = NEUTRALLY) -> dict[str, Any]:
    return valid_chat_body((wire or a_wire()).body("gpt-test", request, origin="here", echo=echo))


def sent_messages(*messages: Message, takes: frozenset[ModelInput] = SEES, echo: ChatEcho = NEUTRALLY) -> list[Any]:
    wire = a_wire(takes=takes)
    messages_sent: list[Any] = sent(a_request(messages=messages, system=""), wire, echo=echo)["messages"]
    return messages_sent


def test_the_body_holds_what_was_asked_for_and_nothing_else() -> None:
    assert sent(a_request(system="Be kind.", max_output_tokens=50)) == {
        "model": "gpt-test",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "What time is it?"}],
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.requirement("A13")
def test_tools_are_sent_in_their_order_with_schemas_that_providers_take() -> None:
    tools = (a_tool("mcp__files__echo"), a_tool("mcp__clock__now", parameters={"type": "object"}))
    body = sent(a_request(tools=tools))
    assert [entry["function"]["name"] for entry in body["tools"]] == ["mcp__files__echo", "mcp__clock__now"]
    assert body["tools"][0]["function"]["parameters"] == tools[0].parameters
    assert body["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert "tool_choice" not in body


@pytest.mark.requirement("A7")
def test_choosing_no_tool_keeps_the_definitions() -> None:
    tools = (a_tool(),)
    free, closing = (sent(a_request(tools=tools, tool_choice=choice)) for choice in ToolChoice)
    assert closing.pop("tool_choice") == "none"
    assert closing == free
    assert "tool_choice" not in sent(a_request(tool_choice=ToolChoice.NONE))


def test_calls_and_results_are_paired_by_our_ids() -> None:
    first, second = a_use(0, params={"text": "ü"}), a_use(1, name="other", params={})
    assistant, *results = sent_messages(
        an_assistant_message(first, second), a_tool_message(a_result(first, "one"), a_result(second, "two"))
    )
    assert assistant == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": first.id, "type": "function", "function": {"name": "mcp__files__echo", "arguments": '{"text":"ü"}'}},
            {"id": second.id, "type": "function", "function": {"name": "other", "arguments": "{}"}},
        ],
    }
    assert results == [
        {"role": "tool", "tool_call_id": first.id, "content": "one"},
        {"role": "tool", "tool_call_id": second.id, "content": "two"},
    ]
    assert len(first.id) <= 40  # the provider's bound


@pytest.mark.requirement("A9")
def test_arguments_that_were_not_an_object_are_shown_inside_of_one() -> None:
    use = ToolUse(id=a_use().id, name="echo", params={}, malformed='{"text": ')
    (assistant,) = sent_messages(an_assistant_message(use, text=""))
    assert assistant["content"] is None
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"malformed_arguments": '{"text": '}


def test_images_of_the_user_are_sent_as_images() -> None:
    linked = ImageContent(media_type="image/jpeg", url="https://example.org/cat.jpg")
    message = a_message(1, content=(TextContent(text="Compare."), PIXEL, linked))
    (entry,) = sent_messages(message)
    assert entry["content"] == [
        {"type": "text", "text": "Compare."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL.data}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg"}},
    ]


@pytest.mark.requirement("A6")
def test_images_of_tools_follow_their_results_since_results_hold_text_only() -> None:
    first, second = a_use(0), a_use(1)
    results = a_tool_message(a_result(first, "a chart", images=(PIXEL,)), a_result(second, "text"))
    one, two, pictures = sent_messages(results)
    assert (one["content"], two["content"]) == ("a chart", "text")
    assert pictures["role"] == "user"
    caption, image = pictures["content"]
    assert first.id in caption["text"]
    assert image["image_url"]["url"].endswith(PIXEL.data or "")


@pytest.mark.requirement("A6")
def test_a_model_that_cannot_see_is_told_about_images_in_words() -> None:
    shown = a_message(1, content=(PIXEL,))
    result = a_tool_message(a_result(a_use(), "a chart", images=(PIXEL,)))
    user, tool = sent_messages(shown, result, takes=NOTHING)
    assert user["content"][0]["type"] == "text"
    assert "image/png" in user["content"][0]["text"]
    assert tool["content"].startswith("a chart\n[An image of type image/png")
    assert str(PIXEL.data) not in json.dumps([user, tool])


def test_a_reply_that_said_nothing_is_left_out() -> None:
    empty = a_message(2, run_id=RUN, role=Role.ASSISTANT, content=())
    assert [entry["role"] for entry in sent_messages(a_user_message(), empty)] == ["user"]


def test_system_messages_of_the_thread_stay_where_they_are() -> None:
    note = a_message(2, "Mind the gap.", role=Role.SYSTEM)
    assert sent_messages(a_user_message(), note)[1] == {"role": "system", "content": "Mind the gap."}


def a_reply_with_items(use: ToolUse, *, number: int = 2, call_id: str | None = "call_1") -> Message:
    call = {
        "type": "function",
        "function": {"name": use.name, "arguments": '{ "text": "hi" }'},
        "extra_content": {"x": 1},
    }
    if call_id is not None:
        call["id"] = call_id
    entry = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call]}
    items = ProviderItems(origin="here", data=json.dumps([entry]).encode())
    return replace(an_assistant_message(use, text="", number=number), items=items)


@pytest.mark.requirement("H1")
def test_a_message_goes_back_as_it_came_and_results_have_the_ids_of_its_provider() -> None:
    use = a_use()
    reply = a_reply_with_items(use)
    for echo in (LOOP, ALWAYS):
        _, assistant, result = sent_messages(a_user_message(), reply, a_tool_message(a_result(use)), echo=echo)
        assert [assistant] == json.loads(reply.items.data if reply.items else b"")
        assert result["tool_call_id"] == "call_1"


@pytest.mark.requirement("H1")
def test_to_another_provider_and_where_reasoning_never_goes_back_the_message_is_sent_neutrally() -> None:
    use = a_use()
    reply, results = a_reply_with_items(use), a_tool_message(a_result(use))
    elsewhere = replace(reply, items=ProviderItems(origin="elsewhere", data=b"[{}]"))
    plain = sent_messages(a_user_message(), replace(reply, items=None), results)
    assert sent_messages(a_user_message(), elsewhere, results, echo=ALWAYS) == plain
    assert sent_messages(a_user_message(), reply, results, echo=NEVER) == plain


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("stored", [b"[", b'[{"tool_calls":[{"id":5}]}]', b'[{"tool_calls":[{"id":"c","x":{"y"}}]}]'])
def test_stored_items_that_cannot_go_back_are_sent_neutrally(stored: bytes) -> None:
    use = a_use()
    reply, results = an_assistant_message(use), a_tool_message(a_result(use))
    broken = replace(reply, items=ProviderItems(origin="here", data=stored))
    neutral = sent_messages(a_user_message(), reply, results, echo=LOOP)
    assert sent_messages(a_user_message(), broken, results, echo=LOOP) == neutral


@pytest.mark.requirement("H1", "H2")
def test_before_the_last_message_of_the_user_a_message_goes_back_without_its_reasoning() -> None:
    use = a_use()
    thread = (
        a_user_message(),
        a_reply_with_items(use),
        a_tool_message(a_result(use)),
        a_user_message("And?", number=4),
    )
    _, assistant, result, _ = sent_messages(*thread, echo=LOOP)
    assert "reasoning_content" not in assistant
    assert assistant["tool_calls"][0]["extra_content"] == {"x": 1}
    assert result["tool_call_id"] == "call_1"
    assert sent_messages(*thread, echo=ALWAYS)[1]["reasoning_content"] == "Hm."


def test_calls_without_an_id_of_their_provider_get_ours() -> None:
    use = a_use()
    thread = (a_user_message(), a_reply_with_items(use, call_id=None), a_tool_message(a_result(use)))
    _, assistant, result = sent_messages(*thread, echo=LOOP)
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == use.id


@pytest.mark.requirement("H1", "H2")
def test_messages_of_other_models_have_what_the_model_requires_of_its_own() -> None:
    first, second = a_use(0), a_use(1)
    thread = (a_user_message(), an_assistant_message(first, second), a_tool_message(a_result(first), a_result(second)))
    thought = sent_messages(*thread, echo=replace(LOOP, neutral=Form.WITH_PLACEHOLDER))[1]
    assert thought["reasoning_content"]
    signed = sent_messages(*thread, echo=replace(LOOP, neutral=Form.WITH_SIGNATURE))[1]["tool_calls"]
    assert signed[0]["extra_content"] == {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert "extra_content" not in signed[1]
