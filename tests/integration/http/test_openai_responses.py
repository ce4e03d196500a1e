"""Responses and conversations at the edge: roles and organizations, what a deletion takes along,
streams that are cut."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from application.runs.ports import events_topic
from application.runs.watch_run import WatchRun
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.events import RunEvent
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Act, Conversation, Service, token_of

RESPONSES, CONVERSATIONS = "/openai/v1/responses", "/openai/v1/conversations"
BODY: dict[str, object] = {"model": "guide", "input": "hello"}
ITEMS: dict[str, object] = {"items": [{"role": "user", "content": "Also this."}]}
ROUTES = [
    ("POST", RESPONSES, Role.RUNNER),
    ("GET", RESPONSES + "/{response}", Role.VIEWER),
    ("GET", RESPONSES + "/{response}?stream=true", Role.VIEWER),
    ("GET", RESPONSES + "/{response}/input_items", Role.VIEWER),
    ("POST", RESPONSES + "/{response}/cancel", Role.RUNNER),
    ("DELETE", RESPONSES + "/{response}", Role.RUNNER),
    ("POST", CONVERSATIONS, Role.RUNNER),
    ("GET", CONVERSATIONS + "/{conversation}", Role.VIEWER),
    ("GET", CONVERSATIONS + "/{conversation}/items", Role.VIEWER),
    ("GET", CONVERSATIONS + "/{conversation}/items/{item}", Role.VIEWER),
    ("POST", CONVERSATIONS + "/{conversation}/items", Role.RUNNER),
    ("DELETE", CONVERSATIONS + "/{conversation}", Role.RUNNER),
]
"""Each with the role that it is for."""

pytestmark = pytest.mark.requirement("X1")


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


async def created(
    service: Service, path: str, body: dict[str, object], *, token: str = token_of(Role.ADMIN)
) -> dict[str, object]:
    answer = await service.call("POST", path, json=body, token=token)
    assert answer.status_code == 200, answer.text
    return cast("dict[str, object]", answer.json())


def body_of(method: str, path: str) -> dict[str, object] | None:
    if method != "POST" or path.endswith("/cancel"):
        return None
    return BODY if path == RESPONSES else ITEMS


async def filled(service: Service, path: str) -> str:
    """The path of a response, and of a conversation with an item, of the runner's key."""
    runner = token_of(Role.RUNNER)
    response = await created(service, RESPONSES, BODY, token=runner)
    conversation = await created(service, CONVERSATIONS, ITEMS, token=runner)
    items = await service.call("GET", f"{CONVERSATIONS}/{conversation['id']}/items")
    [item] = items.json()["data"]
    return path.format(response=response["id"], conversation=conversation["id"], item=item["id"])


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(("method", "path", "role"), ROUTES)
async def test_every_route_of_responses_and_conversations_is_for_its_role_and_those_above(
    service: Service, method: str, path: str, role: Role
) -> None:
    known = await filled(service, path)
    if role is Role.RUNNER:
        refused = await service.call(method, known, json=body_of(method, path), token=token_of(Role.VIEWER))
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    assert (await service.call(method, known, json=body_of(method, path), token=token_of(role))).status_code == 200


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in ROUTES if path != CONVERSATIONS])
async def test_nothing_of_responses_and_conversations_is_found_by_another_organization(
    service: Service, method: str, path: str
) -> None:
    known = await filled(service, path)
    missing = await service.call(method, known, json=body_of(method, path), token=OTHER_ADMIN)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/json")
    if path != RESPONSES:
        assert (await service.call("GET", known.partition("?")[0].removesuffix("/cancel"))).status_code == 200


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_responses_without_a_known_key_answer_401_before_anything_is_read(service: Service, method: str) -> None:
    for path in (RESPONSES, CONVERSATIONS) if method == "POST" else (f"{RESPONSES}/resp_1", f"{CONVERSATIONS}/conv_1"):
        refused = await service.call(method, path, content=b"{not even json", token=None)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.requirement("C6")
async def test_another_organization_continues_neither_a_response_nor_a_conversation(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    response = await created(service, RESPONSES, BODY)
    conversation = await created(service, CONVERSATIONS, ITEMS)
    for more in ({"previous_response_id": response["id"]}, {"conversation": conversation["id"]}):
        missing = await service.call("POST", RESPONSES, json={**BODY, **more}, token=OTHER_ADMIN)
        assert missing.status_code == 404


async def test_items_come_page_after_page_in_both_orders(service: Service) -> None:
    said = [{"role": "user", "content": f"{number}"} for number in range(5)]
    conversation = await created(service, CONVERSATIONS, {"items": said})
    path = f"{CONVERSATIONS}/{conversation['id']}/items?limit=2"
    for order, expected in (("asc", "01234"), ("desc", "43210")):
        texts, more = "", ""
        while True:
            page = (await service.call("GET", f"{path}&order={order}{more}")).json()
            texts += "".join(item["content"][0]["text"] for item in page["data"])
            more = f"&after={page['last_id']}"
            if not page["has_more"]:
                break
        assert texts == expected
    missing = await service.call("GET", f"{path}&after=msg_of_nobody")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "item_not_found")


async def test_the_only_response_of_a_conversation_is_not_deleted_with_its_items(service: Service) -> None:
    conversation = await created(service, CONVERSATIONS, ITEMS)
    response = await created(service, RESPONSES, {**BODY, "conversation": conversation["id"]})
    refused = await service.call("DELETE", f"{RESPONSES}/{response['id']}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "response_in_use")
    items = (await service.call("GET", f"{CONVERSATIONS}/{conversation['id']}/items")).json()["data"]
    assert len(items) == 3


async def test_a_response_is_not_deleted_with_items_that_were_added_to_its_thread(service: Service) -> None:
    response = await created(service, RESPONSES, BODY)
    run = (await service.call("GET", f"/v1/runs/run_{str(response['id']).partition('_')[2]}")).json()
    conversation = f"conv_{run['thread_id'].partition('_')[2]}"
    await created(service, f"{CONVERSATIONS}/{conversation}/items", ITEMS)
    refused = await service.call("DELETE", f"{RESPONSES}/{response['id']}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "response_in_use")


async def test_no_part_of_a_run_is_deleted_with_its_other_parts(service: Service) -> None:
    service.worker.act = Act.ASK
    first = await created(service, RESPONSES, BODY)
    [call] = cast("list[dict[str, object]]", first["output"])[-1:]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sent"}
    second = await created(service, RESPONSES, {"model": "guide", "input": [output]})
    assert second["id"] == f"{first['id']}_1"
    for response in (first, second):
        refused = await service.call("DELETE", f"{RESPONSES}/{response['id']}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "response_in_use")
        assert (await service.call("GET", f"{RESPONSES}/{response['id']}")).status_code == 200


async def test_a_response_is_deleted_with_the_history_of_its_own_request(service: Service) -> None:
    said = [("user", "hello"), ("assistant", "Hi."), ("user", "and?")]
    messages = [{"role": role, "content": text} for role, text in said]
    response = await created(service, RESPONSES, {"model": "guide", "input": messages})
    assert (await service.call("DELETE", f"{RESPONSES}/{response['id']}")).status_code == 200
    assert (await service.call("GET", f"{RESPONSES}/{response['id']}")).status_code == 404


@pytest.mark.requirement("C6")
async def test_a_response_whose_key_is_revoked_ends_its_stream_with_an_error(service: Service) -> None:
    service.worker.act = Act.REST
    viewer = token_of(Role.VIEWER)
    begun = await created(service, RESPONSES, {**BODY, "background": True})
    run_id = RunId(f"run_{str(begun['id']).partition('_')[2]}")
    path = f"{RESPONSES}/{begun['id']}?stream=true"
    stream = Conversation(service.app, "GET", path, token=viewer)
    streaming = asyncio.create_task(stream.hold())
    await asyncio.wait_for(stream.received(2), 10)
    assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 200
    service.worker.act = Act.FINISH
    await service.worker.submit(run_id)
    service.wakeups.wake(events_topic(run_id))
    await asyncio.wait_for(streaming, 10)
    events = events_in(b"".join(stream.chunks).decode())
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "invalid_api_key")
    rest = events_in((await service.call("GET", f"{path}&starting_after={events[-1]['sequence_number']}")).text)
    assert [event["sequence_number"] for event in [*events[:-1], *rest]] == list(range(len(events) - 1 + len(rest)))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RESPONSES, BODY),
        ("/openai/v1/chat/completions", {"model": "guide", "messages": [{"role": "user", "content": "hello"}]}),
    ],
)
async def test_an_unexpected_error_ends_a_stream_with_an_error_and_nothing_of_its_text(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, object]
) -> None:
    async def broken(*_: object, **__: object) -> AsyncGenerator[tuple[RunEvent, ...], None]:
        yield ()
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(WatchRun, "follow", broken)
    answer = await service.call("POST", path, json={**body, "stream": True})
    last = events_in(answer.text)[-1]
    error = last if path == RESPONSES else cast("dict[str, object]", last["error"])
    assert error["code"] == "internal_error"
    assert error["type"] == ("error" if path == RESPONSES else "server_error")
    assert "run_" in str(error["message"])
    assert "hunter2" not in answer.text
    assert "[DONE]" not in answer.text


def events_in(text: str) -> list[dict[str, object]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize(("method", "path"), [("GET", RESPONSES), ("POST", f"{RESPONSES}/compact")])
async def test_what_servers_of_the_protocol_may_leave_out_is_refused_with_what_to_do_instead(
    service: Service, method: str, path: str
) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    response = await service.call(method, path, headers=headers, json=BODY if method == "POST" else None)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (404, "invalid_request_error")
    assert error["code"] == "endpoint_not_implemented"
    assert "response" in error["message"]
    assert (await service.call(method, path, token="dgm_unknown")).status_code == 401
