"""What is sent on the wire of the Responses API: every body is one that the openai package's types
take."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from application.models.ports import ModelRequest, ToolChoice
from domain.threads.message import ImageContent, Message, Role, TextContent, ToolUse
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.model_inputs import NOTHING, ModelInput
from infrastructure.llm.responses_wire import ResponsesWire
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
from tests.unit.llm.sdk_types import valid_responses_body


def a_wire(*, takes: frozenset[ModelInput] = SEES) -> ResponsesWire:
    return ResponsesWire(takes=takes)


def sent(request: ModelRequest, wire: ResponsesWire | None = None) -> dict[str, Any]:
    return valid_responses_body((wire or a_wire()).body("gpt-test", request))


def sent_items(*messages: Message, takes: frozenset[ModelInput] = SEES) -> list[Any]:
    items: list[Any] = sent(a_request(messages=messages, system=""), a_wire(takes=takes))["input"]
    return items


@pytest.mark.requirement("H2")
def test_the_body_holds_what_was_asked_for_and_nothing_is_stored_at_the_provider() -> None:
    message = a_user_message()
    assert sent(a_request(system="Be kind.", messages=(message,), max_output_tokens=50)) == {
        "model": "gpt-test",
        "instructions": "Be kind.",
        "input": [{"role": "user", "content": "What time is it?"}],
        "max_output_tokens": 50,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": message.thread_id,
        "store": False,
        "stream": True,
    }


def test_without_encrypted_reasoning_it_is_not_asked_for() -> None:
    body = valid_responses_body(a_wire().body("gpt-test", a_request(), encrypted_reasoning=False))
    assert "include" not in body


@pytest.mark.parametrize("fault", [{"tools": [{"type": "function", "function": {"name": "a"}}]}, {"max_tokens": 5}])
def test_the_types_refuse_what_is_of_the_other_wire(fault: dict[str, Any]) -> None:
    body = sent(a_request()) | fault
    with pytest.raises((ValidationError, PydanticSerializationError, AssertionError)):
        valid_responses_body(json.dumps(body).encode())


@pytest.mark.requirement("A13", "H2")
def test_tools_are_flat_in_their_order_and_not_strict() -> None:
    tools = (a_tool("mcp__files__echo"), a_tool("mcp__clock__now", parameters={"type": "object"}))
    body = sent(a_request(tools=tools))
    assert [entry["name"] for entry in body["tools"]] == ["mcp__files__echo", "mcp__clock__now"]
    assert body["tools"][0]["parameters"] == tools[0].parameters
    assert body["tools"][1]["parameters"] == {"type": "object", "properties": {}}
    assert [entry["strict"] for entry in body["tools"]] == [False, False]
    assert "tool_choice" not in body
    assert "parallel_tool_calls" not in body


@pytest.mark.requirement("A7")
def test_choosing_no_tool_keeps_the_definitions() -> None:
    tools = (a_tool(),)
    free, closing = (sent(a_request(tools=tools, tool_choice=choice)) for choice in ToolChoice)
    assert closing.pop("tool_choice") == "none"
    assert closing == free
    assert "tool_choice" not in sent(a_request(tool_choice=ToolChoice.NONE))


def test_calls_and_results_are_items_paired_by_our_ids() -> None:
    first, second = a_use(0, params={"text": "ü"}), a_use(1, name="other", params={})
    assert sent_items(
        an_assistant_message(first, second), a_tool_message(a_result(first, "one"), a_result(second, "two"))
    ) == [
        {"role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": first.id, "name": "mcp__files__echo", "arguments": '{"text":"ü"}'},
        {"type": "function_call", "call_id": second.id, "name": "other", "arguments": "{}"},
        {"type": "function_call_output", "call_id": first.id, "output": "one"},
        {"type": "function_call_output", "call_id": second.id, "output": "two"},
    ]
    assert len(first.id) <= 64  # the provider's bound


@pytest.mark.requirement("A9")
def test_arguments_that_were_not_an_object_are_shown_inside_of_one() -> None:
    use = ToolUse(id=a_use().id, name="echo", params={}, malformed='{"text": ')
    (call,) = sent_items(an_assistant_message(use, text=""))
    assert json.loads(call["arguments"]) == {"malformed_arguments": '{"text": '}


def test_images_of_the_user_are_sent_as_images() -> None:
    linked = ImageContent(media_type="image/jpeg", url="https://example.org/cat.jpg")
    (item,) = sent_items(a_message(1, content=(TextContent(text="Compare."), PIXEL, linked)))
    assert item["content"] == [
        {"type": "input_text", "text": "Compare."},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL.data}", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.org/cat.jpg", "detail": "auto"},
    ]


@pytest.mark.requirement("A6", "H2")
def test_images_of_tools_are_parts_of_their_results() -> None:
    first, second, third = a_use(0), a_use(1), a_use(2)
    results = a_tool_message(
        a_result(first, "a chart", images=(PIXEL,)), a_result(second, "", images=(PIXEL,)), a_result(third, "text")
    )
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL.data}", "detail": "auto"}
    assert [item["output"] for item in sent_items(results)] == [
        [{"type": "input_text", "text": "a chart"}, image],
        [image],
        "text",
    ]


@pytest.mark.requirement("A6")
def test_a_model_that_cannot_see_is_told_about_images_in_words() -> None:
    shown = a_message(1, content=(PIXEL,))
    result = a_tool_message(a_result(a_use(), "a chart", images=(PIXEL,)))
    user, output = sent_items(shown, result, takes=NOTHING)
    assert "image/png" in user["content"][0]["text"]
    assert [part["type"] for part in output["output"]] == ["input_text", "input_text"]
    assert str(PIXEL.data) not in json.dumps([user, output])


def test_a_reply_that_said_nothing_is_left_out() -> None:
    empty = a_message(2, run_id=RUN, role=Role.ASSISTANT, content=())
    assert [item["role"] for item in sent_items(a_user_message(), empty)] == ["user"]


def test_system_messages_of_the_thread_stay_where_they_are() -> None:
    note = a_message(2, "Mind the gap.", role=Role.SYSTEM)
    assert sent_items(a_user_message(), note)[1] == {"role": "system", "content": "Mind the gap."}


ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "mcp__files__echo", "arguments": "{}"},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "other", "arguments": "{}"},
]


def a_turn(origin: str = "here") -> tuple[Message, Message]:
    first, second = a_use(0, params={}), a_use(1, name="other", params={})
    items = ProviderItems(origin=origin, data=json.dumps(ITEMS).encode())
    said = replace(an_assistant_message(first, second), items=items)
    return said, a_tool_message(a_result(first, "one"), a_result(second, "two"))


@pytest.mark.requirement("H1", "H2")
def test_items_go_back_as_they_came_and_results_carry_the_ids_of_the_provider() -> None:
    body = valid_responses_body(a_wire().body("gpt-test", a_request(messages=a_turn()), origin="here"))
    assert body["input"] == [
        *ITEMS,
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"type": "function_call_output", "call_id": "call_2", "output": "two"},
    ]


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("stored", [b'"call_id": null', b'"call_id": "call_2"', b'"call_id": 5', b'"call_id": '])
def test_stored_items_that_cannot_go_back_are_sent_neutrally(stored: bytes) -> None:
    said, results = a_turn()
    assert said.items is not None
    broken = replace(said.items, data=said.items.data.replace(b'"call_id": "call_1"', stored))
    wire = a_wire()
    neutral = wire.body("gpt-test", a_request(messages=(replace(said, items=None), results)), origin="here")
    other = a_wire().body("gpt-test", a_request(messages=(replace(said, items=broken), results)), origin="here")
    assert json.loads(other) == json.loads(neutral)


@pytest.mark.requirement("H1")
def test_items_of_another_origin_go_back_neutrally_and_without_ids_of_items() -> None:
    wire, request = a_wire(), a_request(messages=a_turn())
    assert b"gAAA" in wire.body("gpt-test", request, origin="here")
    body = valid_responses_body(wire.body("gpt-test", request, origin="there"))
    assert [item.get("type") for item in body["input"]] == [
        None,
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert all("id" not in item for item in body["input"])
    assert "gAAA" not in json.dumps(body)
    assert [item["call_id"] for item in body["input"][1:]] == [a_use(0).id, a_use(1).id] * 2


@pytest.mark.requirement("H2")
def test_summaries_of_the_reasoning_are_asked_for_only_if_the_agent_wants_them() -> None:
    assert sent(replace(a_request(), reasoning_summary=True))["reasoning"] == {"summary": "auto"}
    assert "reasoning" not in sent(a_request())
