"""read_input: items of a request as messages."""

import pytest

from interfaces.http.bodies import decoded_body
from interfaces.http.openai import response_input
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.response_input import Item, read_input
from tests.refusals import refused

pytestmark = pytest.mark.requirement("X1")


def a_call(number: int) -> Item:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "weather", "arguments": "{}"}


def an_output(number: int) -> Item:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": "sun"}


def calls_of(message: ChatMessage) -> list[str]:
    return [call.id for call in message.tool_calls or ()]


def test_calls_of_one_turn_are_one_message_with_the_text_before_them() -> None:
    said: Item = {"role": "assistant", "content": "Looking."}
    thought: Item = {"type": "reasoning", "id": "rs_1", "summary": []}
    items = [
        said,
        a_call(1),
        thought,
        a_call(2),
        an_output(1),
        an_output(2),
        a_call(3),
        {"role": "user", "content": "x"},
    ]
    read = read_input(items).messages
    assert [(message.role, message.content, calls_of(message)) for message in read] == [
        ("assistant", "Looking.", ["call_1", "call_2"]),
        ("tool", "sun", []),
        ("tool", "sun", []),
        ("assistant", None, ["call_3"]),
        ("user", "x", []),
    ]


def test_the_calls_of_a_turn_are_built_once_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    def counted(model: type[ChatMessage], value: object) -> ChatMessage:
        nonlocal built
        message = decoded_body(model, value)
        built += len(message.tool_calls or ())
        return message

    monkeypatch.setattr(response_input, "decoded_body", counted)
    turns = [[*map(a_call, range(1_000)), an_output(0)] for _ in range(9)]
    messages = read_input([item for turn in turns for item in turn]).messages
    assert (len(messages), built) == (18, 9_000)


@pytest.mark.parametrize("wrong", [{"approve": "no"}, {}, {"approve": False, "reason": 1}])
def test_a_decision_of_another_form_is_refused(wrong: Item) -> None:
    with refused("body_invalid"):
        read_input([{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", **wrong}])
