"""OpenAI's protocols at the edge: keys, roles and organizations as everywhere, errors in that API's
form."""

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Act, Service, problem_of, token_of

CHAT = "/openai/v1/chat/completions"
BODY: dict[str, object] = {"model": "guide", "messages": [{"role": "user", "content": "hello"}]}
ROUTES = [("GET", "/openai/v1/models"), ("GET", "/openai/v1/models/guide"), ("POST", CHAT)]

pytestmark = pytest.mark.requirement("X2")


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_without_a_known_key_every_route_answers_401_in_openais_form(
    service: Service, method: str, path: str
) -> None:
    for token in (None, "sk-unknown"):
        response = await service.call(method, path, content=b"{not even json", token=token)
        assert (response.status_code, response.headers["content-type"]) == (401, "application/json")
        assert response.headers["www-authenticate"].startswith("Bearer")
        error = response.json()["error"]
        assert (error["type"], error["code"], error["param"]) == ("authentication_error", "invalid_api_key", None)


@pytest.mark.requirement("C6")
async def test_viewers_read_models_and_runners_ask_them(service: Service) -> None:
    viewer, runner = token_of(Role.VIEWER), token_of(Role.RUNNER)
    assert [model["id"] for model in (await service.call("GET", ROUTES[0][1], token=viewer)).json()["data"]] == [
        "guide"
    ]
    refused = await service.call("POST", CHAT, json=BODY, token=viewer)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    assert (await service.call("POST", CHAT, json=BODY, token=runner)).status_code == 200


@pytest.mark.requirement("C6")
async def test_agents_of_another_organization_are_no_models(service: Service) -> None:
    assert (await service.call("GET", ROUTES[0][1], token=OTHER_ADMIN)).json()["data"] == []
    for method, path in ROUTES[1:]:
        missing = await service.call(method, path, json=BODY if method == "POST" else None, token=OTHER_ADMIN)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.requirement("C6")
async def test_a_conversation_never_continues_a_thread_of_another_key(service: Service) -> None:
    threads = []
    messages: list[dict[str, object]] = [{"role": "user", "content": "hello"}]
    for role in (Role.RUNNER, Role.RUNNER, Role.ADMIN):
        answer = await service.call("POST", CHAT, json={**BODY, "messages": messages}, token=token_of(role))
        run = (await service.call("GET", answer.headers["location"])).json()
        threads.append(run["thread_id"])
        if len(messages) == 1:
            messages += [answer.json()["choices"][0]["message"], {"role": "user", "content": "and?"}]
    assert threads[0] == threads[1] != threads[2]


@pytest.mark.requirement("C6")
async def test_results_for_calls_of_another_organization_find_nothing(service: Service) -> None:
    service.worker.act = Act.ASK
    asked = (await service.call("POST", CHAT, json=BODY)).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "sent"}
    body = {**BODY, "messages": [{"role": "user", "content": "hello"}, asked, result]}
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    missing = await service.call("POST", CHAT, json=body, token=OTHER_ADMIN)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "run_not_found")
    answered = await service.call("POST", CHAT, json=body)
    assert answered.json()["choices"][0]["message"]["content"] == "Done."


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ([{"role": "user"}, {"role": "assistant", "content": "x"}], "messages"),
        ([{"role": "system", "content": "x"}], "messages"),
        ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ([{"role": "tool", "content": "x", "tool_call_id": "call_theirs"}], "tool_call_id"),
        ([{"role": "someone", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "video"}]}], "messages[0].content[0].type"),
        (
            [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
            "messages[0].content[0].file.file_id",
        ),
        ([{"role": "user", "content": " "}], "input"),
    ],
)
async def test_messages_that_make_no_input_are_refused_with_their_place(
    service: Service, messages: list[dict[str, object]], param: str
) -> None:
    refused = await service.call("POST", CHAT, json={**BODY, "messages": messages})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert service.worker.submitted == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "must have an http, https or data URL"),
        ("data:text/html;base64,AAAA", "media_type must match ^image/"),
    ],
)
async def test_an_image_that_is_none_is_refused_with_the_reason(service: Service, url: str, why: str) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    refused = await service.call("POST", CHAT, json={**BODY, "messages": [{"role": "user", "content": [part]}]})
    assert refused.status_code == 400
    assert f"messages[0].content[0].image_url.url: {why}" in refused.json()["error"]["message"]


async def test_calls_in_a_history_need_their_results(service: Service) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    answered = {"role": "tool", "tool_call_id": "call_1", "content": "sun"}
    user = {"role": "user", "content": "hello"}
    for messages in ([user, asked, user], [user, answered, user], [user, asked, answered, answered, user]):
        refused = await service.call("POST", CHAT, json={**BODY, "messages": messages})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "body_invalid")


async def test_unknown_paths_and_broken_json_are_errors_in_openais_form(service: Service) -> None:
    broken = await service.call("POST", CHAT, content=b"{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")
    for method, path, status, code in [
        ("GET", "/openai/v1/assistants", 404, "route_not_found"),
        ("GET", "/openai/v1", 404, "route_not_found"),
        ("DELETE", "/openai/v1/models", 405, "method_not_allowed"),
        ("PUT", CHAT, 405, "method_not_allowed"),
    ]:
        unknown = await service.call(method, path)
        assert (unknown.status_code, unknown.headers["content-type"]) == (status, "application/json")
        error = unknown.json()["error"]
        assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, None)
        assert ("allow" in unknown.headers) == (status == 405)
    problem_of(await service.call("GET", "/openai/v10/models"), 404, "route_not_found")


@pytest.mark.requirement("C6", "X1")
async def test_a_viewer_is_refused_before_the_conversation_is_read(service: Service) -> None:
    unreadable = {"model": "guide", "input": [{"type": "function_call"}], "messages": [{"role": "assistant"}]}
    for path in (CHAT, "/openai/v1/responses"):
        refused = await service.call("POST", path, json=unreadable, token=token_of(Role.VIEWER))
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")


def said(role: str, content: str) -> dict[str, object]:
    return {"role": role, "content": content}


async def run_of(service: Service, path: str, body: dict[str, object], *, repeated: bool = False) -> dict[str, object]:
    """The run that answers a request; `repeated` by the client's library."""
    headers = {"x-stainless-retry-count": "1"} if repeated else {}
    answer = await service.call("POST", path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    run: dict[str, object] = (await service.call("GET", answer.headers["location"])).json()
    return run


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [said("system", "You speak to Bob."), said("user", "hello")]},
        {"tools": [{"type": "function", "function": {"name": "weather"}}]},
        {"response_format": {"type": "json_object"}},
        {"temperature": 0.5},
        {"metadata": {"who": "Bob"}},
        {"user": "bob"},
        {"safety_identifier": "bob"},
    ],
)
async def test_a_repeated_request_gets_no_run_of_one_that_differs(service: Service, other: dict[str, object]) -> None:
    first = await run_of(service, CHAT, BODY)
    assert (await run_of(service, CHAT, {**BODY, **other}, repeated=True))["id"] != first["id"]
    assert (await run_of(service, CHAT, BODY, repeated=True))["id"] == first["id"]


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, BODY), ("/openai/v1/responses", {"model": "guide", "input": "hello"})]
)
async def test_a_request_counts_as_repeated_for_minutes(service: Service, path: str, body: dict[str, object]) -> None:
    first = await run_of(service, path, body)
    service.clock.advance(300)
    assert (await run_of(service, path, body, repeated=True))["id"] == first["id"]
    service.clock.advance(400)
    assert (await run_of(service, path, body, repeated=True))["id"] != first["id"]


ALICE = [said("system", "You speak to Alice."), said("user", "hello")]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ({"messages": ALICE}, {"messages": ALICE}, True),
        ({"messages": ALICE}, {"messages": [said("system", "You speak to Bob."), *ALICE[1:]]}, False),
        ({"messages": ALICE}, {"messages": ALICE[1:]}, False),
        ({"messages": ALICE, "user": "alice"}, {"messages": ALICE, "user": "alice"}, True),
        ({"messages": ALICE, "user": "alice"}, {"messages": ALICE, "user": "bob"}, False),
        ({"messages": ALICE, "user": "alice"}, {"messages": ALICE}, False),
    ],
)
@pytest.mark.parametrize("act", [Act.FINISH, Act.APPROVE])
async def test_people_behind_one_key_share_no_thread(
    service: Service, first: dict[str, object], second: dict[str, object], is_same: bool, act: Act
) -> None:
    service.worker.act = act
    asked = await service.call("POST", CHAT, json={**BODY, **first})
    run = (await service.call("GET", asked.headers["location"])).json()
    if act is Act.APPROVE:
        decision = {"decision": "deny"}
        await service.call("POST", f"/v1/approvals/{run['pending'][0]['approval_id']}", json=decision)
        service.worker.act = Act.FINISH
    answered = asked.json()["choices"][0]["message"]
    messages = second["messages"]
    assert isinstance(messages, list)
    again = await run_of(service, CHAT, {**BODY, **second, "messages": [*messages, answered, said("user", "and?")]})
    assert (again["thread_id"] == run["thread_id"]) is is_same
