"""Questions of servers of the older generations that go to whoever made the call."""

import asyncio
from collections.abc import Mapping

import pytest
from mcp.client.session import ClientRequestContext
from mcp.types import CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams, ElicitResult, ErrorData
from pytest_mock import MockerFixture

from application.mcp.ports import McpCall, McpFailure, McpFailureKind, McpReply
from application.system.deadline import Deadline
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind
from domain.mcp.server import Credentials
from infrastructure.mcp.connections.asked_calls import AskedCalls
from infrastructure.mcp.connections.input_requests import read_input_required
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.secrets.redaction import Redactor
from tests.mcp_builders import a_person_server

FORM: JsonObject = {"type": "object", "properties": {"colour": {"type": "string"}}}
RED: JsonObject = {"action": "accept", "content": {"colour": "red"}}


class Caller:
    """Answers when it is told to."""

    def __init__(self, result: JsonObject | None = None, *, caller: str = "one") -> None:
        self.result = result
        self.caller = caller
        self.asked: asyncio.Queue[ClientRequest] = asyncio.Queue()
        self.may_answer = asyncio.Event()

    @property
    def capabilities(self) -> JsonObject:
        return {"elicitation": {}}

    def lacks(self, required: JsonObject) -> JsonObject:
        return {}

    async def ask(self, requests: tuple[ClientRequest, ...]) -> Mapping[str, ClientAnswer]:
        for request in requests:
            self.asked.put_nowait(request)
        await self.may_answer.wait()
        return {request.key: ClientAnswer(result=self.result, refusal="No.") for request in requests}


def a_call(caller: Caller | None) -> McpCall:
    return McpCall(tool_name="paint", arguments={}, timeout_s=9.0, relay=caller)


def asked_for(calls: AskedCalls, mocker: MockerFixture) -> "asyncio.Task[ElicitResult | ErrorData]":
    context = mocker.create_autospec(ClientRequestContext, instance=True)
    params = ElicitRequestFormParams(message="Which?", requested_schema=FORM)
    return asyncio.create_task(calls.answer(context, params))


@pytest.mark.requirement("F5", "B4")
async def test_the_calls_own_time_stands_still_while_its_caller_is_asked(mocker: MockerFixture) -> None:
    calls, caller = AskedCalls(), Caller(RED)
    with Deadline(asyncio.get_running_loop().time() + 500) as timeout:
        began = timeout.when()
        assert began is not None
        with calls.during(a_call(caller)) as asked:
            asked.timeout = timeout
            answering = asked_for(calls, mocker)
            request = await caller.asked.get()
            assert request.params == {"message": "Which?", "requestedSchema": FORM}
            assert timeout.when() is None
            caller.may_answer.set()
            assert await answering == ElicitResult(action="accept", content={"colour": "red"})
            after = timeout.when()
            assert after is not None
            assert after >= began


@pytest.mark.requirement("F5", "B4")
async def test_a_question_ends_with_its_call_and_is_dismissed_beside_another(mocker: MockerFixture) -> None:
    calls, caller = AskedCalls(), Caller(RED)
    with calls.during(a_call(caller)):
        answering = asked_for(calls, mocker)
        await caller.asked.get()
    assert await answering == ElicitResult(action="cancel")
    with calls.during(a_call(caller)), calls.during(a_call(None)):
        assert await asked_for(calls, mocker) == ElicitResult(action="cancel")
    assert caller.asked.empty()


@pytest.mark.requirement("F5", "B4")
async def test_questions_of_calls_side_by_side_reach_their_caller_each_by_a_call_of_its_own(
    mocker: MockerFixture,
) -> None:
    calls, first, second = AskedCalls(), Caller(RED), Caller(RED)
    with calls.during(a_call(first)), calls.during(a_call(second)):
        answering = [asked_for(calls, mocker) for _ in range(2)]
        await first.asked.get()
        await second.asked.get()
        first.may_answer.set()
        second.may_answer.set()
        answers = [await answer for answer in answering]
    assert answers == [ElicitResult(action="accept", content={"colour": "red"})] * 2


@pytest.mark.requirement("F5", "B4", "E7")
async def test_no_question_reaches_one_of_several_callers(mocker: MockerFixture) -> None:
    calls, first, second = AskedCalls(), Caller(RED), Caller(RED, caller="other")
    with calls.during(a_call(first)), calls.during(a_call(second)):
        assert await asked_for(calls, mocker) == ElicitResult(action="cancel")
    assert first.asked.empty()
    assert second.asked.empty()


@pytest.mark.requirement("F5", "B4")
@pytest.mark.parametrize(
    ("result", "code"),
    [({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi."}}, None), ({}, -1), (None, -1)],
)
async def test_a_models_answer_is_passed_on_and_anything_else_is_a_refusal(
    mocker: MockerFixture, result: JsonObject | None, code: int | None
) -> None:
    calls, caller = AskedCalls(), Caller(result)
    caller.may_answer.set()
    context = mocker.create_autospec(ClientRequestContext, instance=True)
    with calls.during(a_call(caller)):
        answer = await calls.sample(context, CreateMessageRequestParams(messages=[], max_tokens=1))
    assert (answer.code if isinstance(answer, ErrorData) else None) == code
    assert isinstance(answer, CreateMessageResult) is (code is None)


@pytest.mark.requirement("F5", "B12")
async def test_a_server_s_secrets_are_in_nothing_that_it_asks() -> None:
    known, caller, server = KnownSecrets(Redactor()), Caller(RED), a_person_server(Credentials.ORGANIZATION)
    known.register(server, "s3cret-of-the-server")
    caller.may_answer.set()
    params: JsonObject = {"message": "Is it s3cret-of-the-server?", "requestedSchema": FORM}
    request = ClientRequest(key="a", kind=ClientRequestKind.ELICITATION, params=params)

    relay = known.hiding_in(server, a_call(caller)).relay
    assert relay is not None
    assert await relay.ask((request,)) == {"a": ClientAnswer(result=RED, refusal="No.")}
    assert "s3cret" not in str((await caller.asked.get()).params)

    requests = {"a": {"method": "elicitation/create", "params": params}}
    reply = McpReply(is_error=False, content=(), input_required=read_input_required({"inputRequests": requests}))
    hidden = known.hide_in(server, reply).input_required
    assert hidden is not None
    assert "s3cret" not in str(hidden.requests)


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "request_",
    [
        {"method": "sampling/createMessage", "params": {"messages": "all"}},
        {"method": "sampling/createMessage", "params": {"messages": ["x" * 300_000]}},
        {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"a": "x" * 20_000}}},
    ],
)
def test_what_is_not_valid_or_too_long_is_asked_of_nobody(request_: JsonObject) -> None:
    with pytest.raises(McpFailure) as failure:
        read_input_required({"inputRequests": {"a": request_}})
    assert failure.value.kind is McpFailureKind.INVALID_REPLY


def test_what_belongs_to_one_hop_is_not_passed_on() -> None:
    params: JsonObject = {"messages": [], "maxTokens": 1, "_meta": {"progressToken": 1}, "includeContext": "allServers"}
    asked = read_input_required({"inputRequests": {"a": {"method": "sampling/createMessage", "params": params}}})
    assert [request.params for request in asked.requests] == [{"messages": [], "maxTokens": 1}]
