"""What is sent on the messages wire."""

import json
from dataclasses import replace
from typing import Any

import pytest

from application.models.ports import ModelRequest, ToolChoice
from domain.threads.message import ImageContent, Message, Role, TextContent, ToolUse
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.anthropic_wire import AnthropicWire
from infrastructure.llm.model_inputs import NOTHING, ModelInput
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
from tests.unit.llm.sdk_types import valid_messages_body

CACHED = {"cache_control": {"type": "ephemeral"}}


def sent(request: ModelRequest, *, takes: frozenset[ModelInput] = SEES) -> dict[str, Any]:
    wire = AnthropicWire(takes=takes, default_max_tokens=1000)
    return valid_messages_body(wire.body("claude-test", request, origin="here"))


def test_the_body_holds_what_was_asked_for_and_nothing_else() -> None:
    assert sent(a_request(system="Be kind.")) == {
        "model": "claude-test",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "Be kind.", **CACHED}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What time is it?", **CACHED}]}],
        "stream": True,
    }
    bare = sent(a_request(system="", max_output_tokens=50))
    assert bare["max_tokens"] == 50
    assert not {"system", "tools"} & set(bare)


@pytest.mark.requirement("A7")
def test_choosing_no_tool_keeps_the_definitions() -> None:
    tools = (a_tool(),)
    free, closing = (sent(a_request(tools=tools, tool_choice=choice)) for choice in ToolChoice)
    assert closing.pop("tool_choice") == {"type": "none"}
    assert closing == free
    assert "tool_choice" not in sent(a_request(tool_choice=ToolChoice.NONE))


@pytest.mark.requirement("A13")
def test_prompt_caches_are_marked_after_tools_system_and_the_last_two_user_turns() -> None:
    first, second = a_use(0, turn=1), a_use(0, turn=2)
    body = sent(
        a_request(
            tools=(a_tool("one"), a_tool("two", parameters={"type": "object"})),
            messages=(
                a_user_message(),
                an_assistant_message(first, number=2),
                a_tool_message(a_result(first), number=3),
                an_assistant_message(second, number=4),
                a_tool_message(a_result(second), number=5),
            ),
        )
    )
    assert [("cache_control" in tool) for tool in body["tools"]] == [False, True]
    assert body["tools"][1]["input_schema"] == {"type": "object", "properties": {}}
    assert "cache_control" in body["system"][0]
    marked = [["cache_control" in block for block in message["content"]] for message in body["messages"]]
    assert marked == [[False], [False, False], [True], [False, False], [True]]
    assert json.dumps(body).count("cache_control") == 4  # the provider's bound


def test_marks_are_not_kept_with_the_message() -> None:
    wire = AnthropicWire(takes=SEES, default_max_tokens=1000)
    use = a_use()
    history = (a_user_message(), an_assistant_message(use), a_tool_message(a_result(use)))
    later = (*history, an_assistant_message(text="ok", number=4), a_user_message("More.", number=5))
    for messages in (history[:1], history, later):
        body = json.loads(wire.body("claude-test", a_request(messages=messages)))
        assert body == sent(a_request(messages=messages))


def test_calls_and_results_are_paired_by_our_ids() -> None:
    first, second = a_use(0), a_use(1, params={})
    messages = (
        an_assistant_message(first, second),
        a_tool_message(a_result(first, "one"), a_result(second, "boom", is_error=True)),
    )
    assistant, results = sent(a_request(messages=messages))["messages"]
    assert assistant["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": first.id, "name": first.name, "input": {"text": "hi"}},
        {"type": "tool_use", "id": second.id, "name": second.name, "input": {}},
    ]
    assert results["role"] == "user"
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": first.id, "content": [{"type": "text", "text": "one"}]},
        {
            "type": "tool_result",
            "tool_use_id": second.id,
            "content": [{"type": "text", "text": "boom"}],
            "is_error": True,
            **CACHED,
        },
    ]


@pytest.mark.requirement("A9")
def test_arguments_that_were_not_an_object_are_shown_inside_of_one() -> None:
    use = ToolUse(id=a_use().id, name="echo", params={}, malformed='{"text": ')
    (assistant,) = sent(a_request(messages=(an_assistant_message(use, text=""),)))["messages"]
    assert assistant["content"][0]["input"] == {"malformed_arguments": '{"text": '}


@pytest.mark.requirement("A6")
def test_images_are_kept_as_images_in_messages_and_in_results() -> None:
    linked = ImageContent(media_type="image/jpeg", url="https://example.org/cat.jpg")
    use = a_use()
    messages = (a_message(1, content=(linked,)), a_tool_message(a_result(use, "", images=(PIXEL,))))
    user, results = sent(a_request(messages=messages))["messages"]
    assert user["content"][0]["source"] == {"type": "url", "url": "https://example.org/cat.jpg"}
    (image,) = results["content"][0]["content"]
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PIXEL.data}


@pytest.mark.requirement("A6")
def test_a_model_that_cannot_see_is_told_about_images_in_words() -> None:
    messages = (a_tool_message(a_result(a_use(), "a chart", images=(PIXEL,))),)
    (results,) = sent(a_request(messages=messages), takes=NOTHING)["messages"]
    text, described = results["content"][0]["content"]
    assert text["text"] == "a chart"
    assert described["type"] == "text"
    assert "image/png" in described["text"]


def test_blank_text_and_messages_without_content_are_left_out_since_the_provider_refuses_them() -> None:
    use = a_use()
    blank = a_message(2, run_id=RUN, role=Role.ASSISTANT, content=(TextContent(text=" \n"), use))
    empty = a_message(4, run_id=RUN, role=Role.ASSISTANT, content=(TextContent(text=""),))
    body = sent(a_request(messages=(a_user_message(), blank, a_tool_message(a_result(use, "")), empty)))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
    assert "content" not in body["messages"][2]["content"][0]


def with_items(message: Message, *blocks: object, origin: str = "here") -> Message:
    return replace(message, items=ProviderItems(origin=origin, data=json.dumps(blocks).encode()))


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


@pytest.mark.requirement("H1")
def test_a_message_goes_back_as_it_came_and_results_have_the_ids_of_its_provider() -> None:
    first, second = a_use(0), a_use(1)
    blocks = (
        THINKING,
        *({"type": "tool_use", "id": f"toolu_{number}", "name": "echo", "input": {}} for number in (1, 2)),
    )
    reply = with_items(an_assistant_message(first, second, text=""), *blocks)
    results = a_tool_message(a_result(first, "one"), a_result(second, "two"))
    _, assistant, tool = sent(a_request(messages=(a_user_message(), reply, results)))["messages"]
    assert assistant == {"role": "assistant", "content": [*blocks]}
    assert [result["tool_use_id"] for result in tool["content"]] == ["toolu_1", "toolu_2"]


@pytest.mark.requirement("H1")
def test_items_of_another_origin_are_not_sent() -> None:
    use = a_use()
    reply, results = an_assistant_message(use), a_tool_message(a_result(use))
    foreign = with_items(reply, THINKING, origin="elsewhere")
    expected, said = (sent(a_request(messages=(a_user_message(), one, results))) for one in (reply, foreign))
    assert said == expected


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("stored", [b'{"type":"tool_use"}', b'{"type":"tool_use","id":"toolu_1","input":{"x"}}', b"{"])
def test_stored_items_that_cannot_go_back_are_sent_neutrally(stored: bytes) -> None:
    use = a_use()
    reply, results = an_assistant_message(use), a_tool_message(a_result(use))
    broken = replace(reply, items=ProviderItems(origin="here", data=b"[" + stored + b"]"))
    expected, said = (sent(a_request(messages=(a_user_message(), one, results))) for one in (reply, broken))
    assert said == expected


@pytest.mark.requirement("H1")
def test_a_paused_reply_with_items_goes_back_as_it_came() -> None:
    paused = with_items(an_assistant_message(text="Let me look. "), THINKING, {"type": "text", "text": "Let me look. "})
    assistant = sent(a_request(messages=(a_user_message(), paused)))["messages"][-1]
    assert assistant["content"][-1] == {"type": "text", "text": "Let me look. "}
