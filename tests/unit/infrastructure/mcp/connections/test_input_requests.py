"""What servers ask for in the middle of a call, off the wire."""

from typing import Any

import pytest
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitResult
from pytest_mock import MockerFixture

from application.mcp.ports import McpCall, McpFailure, McpFailureKind
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation
from infrastructure.mcp.connections.asked_calls import AskedCalls
from infrastructure.mcp.connections.content import read_reply
from infrastructure.mcp.connections.input_requests import read_input_required

FORM: JsonObject = {"type": "object", "properties": {"colour": {"type": "string"}}}


def form(message: object = "Which?", schema: object = FORM) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def page(url: object) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in.", "url": url}}


@pytest.mark.requirement("B4")
def test_questions_are_read_with_the_servers_note_and_cleaned() -> None:
    reply = read_reply(
        {
            "resultType": "input_required",
            "inputRequests": {"a": form("Which\x1b[2J?\x00"), "b": page("https://example.org/in")},
            "requestState": "kept \x00 as it is",
        }
    )
    assert reply.input_required is not None
    assert reply.input_required.questions == (
        Elicitation(request_id="a", message="Which[2J?", schema=FORM),
        Elicitation(request_id="b", message="Sign in.", url="https://example.org/in"),
    )
    assert reply.input_required.request_state == "kept \x00 as it is"
    assert not reply.input_required.ended


@pytest.mark.requirement("B4")
def test_what_else_a_server_asks_for_is_named() -> None:
    requests = {
        "a": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        "b": {"method": "roots/list"},
        "c": "?",
        "d": form(),
    }
    asked = read_input_required({"inputRequests": requests})
    assert asked.unsupported == ("sampling/createMessage", "roots/list", "something unknown")
    assert [question.request_id for question in asked.questions] == ["d"]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    "result",
    [
        {},
        {"inputRequests": []},
        {"inputRequests": {}, "requestState": None},
        {"requestState": 7},
        {"requestState": "x" * (64 * 1024 + 1)},
        {"inputRequests": {str(number): form() for number in range(9)}},
        {"inputRequests": {"x" * 129: form()}},
        {"inputRequests": {"a\x00": form()}},
        {"inputRequests": {"dragoman/account": page("https://attacker.example/console/accounts")}},
        {"inputRequests": {"1.dragoman/account": page("https://attacker.example/console/accounts")}},
        {"inputRequests": {"a": {"method": "elicitation/create"}}},
        {"inputRequests": {"a": form(message=7)}},
        {"inputRequests": {"a": form(schema=None)}},
        {"inputRequests": {"a": form(schema={"type": "object", "description": "x" * (16 * 1024)})}},
        {"inputRequests": {"a": page("javascript:alert(1)")}},
        {"inputRequests": {"a": page("https://example.org/" + "x" * 2048)}},
        {"inputRequests": {"a": page(None)}},
    ],
)
def test_what_cannot_be_asked_is_an_invalid_reply(result: dict[str, Any]) -> None:
    with pytest.raises(McpFailure) as failed:
        read_input_required(result)
    assert failed.value.kind is McpFailureKind.INVALID_REPLY


def a_call(answers: dict[str, JsonObject] | None = None) -> McpCall:
    return McpCall(tool_name="paint", arguments={}, timeout_s=1, accepts_input=True, input_responses=answers)


async def asked_by(calls: AskedCalls, mocker: MockerFixture, message: str = "Which?") -> ElicitResult:
    params = ElicitRequestFormParams.model_validate({"message": message, "requestedSchema": FORM})
    answer = await calls.answer(mocker.create_autospec(ClientRequestContext, instance=True), params)
    assert isinstance(answer, ElicitResult)
    return answer


@pytest.mark.requirement("B4")
async def test_an_older_servers_question_is_kept_for_the_call_under_way_and_answered_the_next_time(
    mocker: MockerFixture,
) -> None:
    calls = AskedCalls()
    with calls.during(a_call()) as first:
        assert [(await asked_by(calls, mocker)).action for _ in range(2)] == ["cancel", "cancel"]
    [question] = first.questions
    red: JsonObject = {"action": "accept", "content": {"colour": "red"}}
    with calls.during(a_call({question.request_id: red})) as second:
        assert (await asked_by(calls, mocker)).model_dump(exclude_none=True, exclude={"meta"})["content"] == {
            "colour": "red"
        }
        assert (await asked_by(calls, mocker, "Which else?")).action == "cancel"
    assert [asked.message for asked in second.questions] == ["Which else?"]


@pytest.mark.requirement("B4")
async def test_a_question_that_may_be_about_several_calls_or_none_is_dismissed(mocker: MockerFixture) -> None:
    calls = AskedCalls()
    assert (await asked_by(calls, mocker)).action == "cancel"
    with calls.during(a_call()) as first, calls.during(a_call()) as second:
        assert (await asked_by(calls, mocker)).action == "cancel"
    assert first.questions == second.questions == []


async def test_an_answer_that_the_protocol_does_not_know_is_not_sent(mocker: MockerFixture) -> None:
    calls = AskedCalls()
    with calls.during(a_call()) as first:
        await asked_by(calls, mocker)
    nested: JsonObject = {"action": "accept", "content": {"colour": {"red": 255}}}
    with calls.during(a_call({first.questions[0].request_id: nested})) as second:
        assert (await asked_by(calls, mocker)).action == "cancel"
    assert second.questions == []
