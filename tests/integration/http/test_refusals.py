"""What a model provider said about a failed run, in each protocol: operators and admins read it,
others a neutral sentence."""

from collections.abc import Awaitable, Callable

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.a2a_client import AGENT, VERSION, says
from tests.integration.http.service import REFUSAL, Act, Service, token_of

NEUTRAL = "The model does not answer."
TOLD = f"{NEUTRAL} The provider said: {REFUSAL.message}"
CHAT = {"model": "guide", "messages": [{"role": "user", "content": "hello"}]}
RESPONSE = {"model": "guide", "input": "hello"}
UI = {"id": "c1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]}
AG_UI = {
    "threadId": "t1",
    "runId": "r1",
    "messages": [{"id": "m1", "role": "user", "content": "hello"}],
    "tools": [],
    "context": [],
}

Answer = Callable[[Service, str], Awaitable[str]]


def posted(path: str, body: object, *, then: str | None = None, headers: dict[str, str] | None = None) -> Answer:
    """The body of an answer, and of what is read afterwards with its id."""

    async def answer(service: Service, token: str) -> str:
        response = await service.call("POST", path, json=body, token=token, headers=headers)
        if then is None:
            return response.text
        return (await service.call("GET", then.format(response.json()["id"]), token=token)).text

    return answer


PROTOCOLS = {
    "Responses": posted("/openai/v1/responses", RESPONSE),
    "Responses, streamed": posted("/openai/v1/responses", {**RESPONSE, "stream": True}),
    "Responses, read later": posted("/openai/v1/responses", RESPONSE, then="/openai/v1/responses/{}"),
    "Responses, streamed later": posted("/openai/v1/responses", RESPONSE, then="/openai/v1/responses/{}?stream=true"),
    "chat completions": posted("/openai/v1/chat/completions", CHAT),
    "chat completions, streamed": posted("/openai/v1/chat/completions", {**CHAT, "stream": True}),
    "AI SDK": posted("/ai-sdk/v1/guide/chat", {**UI, "trigger": "submit-message"}),
    "AG-UI": posted("/ag-ui/v1/guide", AG_UI),
    "A2A": posted(f"{AGENT}/message:send", says(), headers=VERSION),
    "A2A, streamed": posted(f"{AGENT}/message:stream", says(), headers=VERSION),
}


@pytest.mark.requirement("H6", "X1", "X2", "X3", "X4", "X5", "C6")
@pytest.mark.parametrize("role", [Role.RUNNER, Role.OPERATOR, Role.ADMIN])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_operators_and_admins_read_what_the_provider_said_in_every_protocol(
    service: Service, protocol: str, role: Role
) -> None:
    service.worker.act = Act.FAIL
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL, "description": "Guides."})
    told = await PROTOCOLS[protocol](service, token_of(role))
    assert NEUTRAL in told
    assert (TOLD in told) is (role is not Role.RUNNER)
    assert (REFUSAL.message in told) is (role is not Role.RUNNER)


@pytest.mark.requirement("H6", "X5", "C6")
async def test_a_task_says_to_each_reader_what_the_reader_may_know(service: Service) -> None:
    service.worker.act = Act.FAIL
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL, "description": "Guides."})
    sent = await service.call(
        "POST", f"{AGENT}/message:send", json=says(), token=token_of(Role.RUNNER), headers=VERSION
    )
    task = sent.json()["task"]["id"]
    for role in Role:
        for path in (f"/tasks/{task}", "/tasks"):
            read = await service.call("GET", f"{AGENT}{path}", token=token_of(role), headers=VERSION)
            assert (TOLD in read.text) is role.includes(Role.OPERATOR), (role, path)
            assert NEUTRAL in read.text
