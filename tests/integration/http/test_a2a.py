"""Tasks of A2A at the edge: both bindings, keys and roles as everywhere, contexts, states, and
errors of the protocol."""

import asyncio
import json

import pytest

from domain.identity.role import Role
from domain.threads.attachments import MAX_ATTACHMENTS
from domain.threads.message import ImageContent
from domain.tools.result import ToolResult
from tests.composition import MODEL
from tests.integration.http.a2a_client import (
    AGENT,
    VERSION,
    Json,
    called,
    failed,
    rest,
    rpc,
    rpc_failed,
    says,
    sent,
    updates,
)
from tests.integration.http.service import OTHER_ADMIN, Act, Conversation, Service, token_of

pytestmark = pytest.mark.requirement("X5")


@pytest.fixture(autouse=True)
async def agents(service: Service) -> None:
    for name in ("guide", "other"):
        await service.call("POST", "/v1/agents", json={"name": name, "model": MODEL, "description": "Guides."})


@pytest.mark.requirement("C6")
async def test_every_operation_needs_a_known_key_and_the_right_role(service: Service) -> None:
    paths = [
        ("POST", "/message:send"),
        ("POST", "/message:stream"),
        ("GET", "/tasks"),
        ("GET", "/tasks/run_1"),
        ("POST", "/tasks/run_1:cancel"),
        ("GET", "/extendedAgentCard"),
    ]
    for method, path in paths:
        failed(await rest(service, method, path, json=says(), token="dgm_unknown"), 401, "TOKEN_INVALID")
        failed(await rest(service, method, path, json=says(), token=None), 401, "TOKEN_MISSING")
    refused = await rpc(service, "SendMessage", says(), token="dgm_unknown")
    assert rpc_failed(refused, -32000, status=401)
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    viewer = token_of(Role.VIEWER)
    failed(await rest(service, "POST", "/message:send", json=says(), token=viewer), 403, "ROLE_INSUFFICIENT")
    rpc_failed(await rpc(service, "SendMessage", says(), token=viewer), -32000, status=403)
    task = await sent(service)
    assert (await rest(service, "GET", f"/tasks/{task['id']}", token=viewer)).json()["id"] == task["id"]


@pytest.mark.requirement("C6")
async def test_tasks_of_another_organization_or_agent_are_not_found(service: Service) -> None:
    service.worker.act = Act.REST
    task = await sent(service, configuration={"returnImmediately": True})
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    here, message = f"/tasks/{task['id']}", says(taskId=task["id"])
    for token, agent in ((OTHER_ADMIN, AGENT), (token_of(Role.ADMIN), "/a2a/v1/other")):
        for method, path in (("GET", here), ("POST", f"{here}:cancel"), ("GET", f"{here}:subscribe")):
            failed(await rest(service, method, path, token=token, agent=agent), 404, "TASK_NOT_FOUND")
        answer = await rest(service, "POST", "/message:send", json=message, token=token, agent=agent)
        failed(answer, 404, "TASK_NOT_FOUND")
        listed = await rest(service, "GET", "/tasks", token=token, agent=agent)
        assert listed.json() == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    named = await rest(service, "POST", "/message:send", json=says(contextId=task["contextId"]), token=OTHER_ADMIN)
    failed(named, 404, "THREAD_NOT_FOUND")


async def test_a_message_is_answered_by_its_task_with_the_answer_as_artifact(service: Service) -> None:
    task = await sent(service)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"] == [{"artifactId": "answer", "name": "answer", "parts": [{"text": "Done."}]}]
    assert [(message["role"], message["parts"]) for message in task["history"]] == [
        ("ROLE_USER", [{"text": "hello"}]),
        ("ROLE_AGENT", [{"text": "Done."}]),
    ]
    over_http = (await rest(service, "POST", "/message:send", json=says())).json()["task"]
    assert {**over_http, "id": 0, "contextId": 0}.keys() == task.keys()
    short = await called(service, "GetTask", {"id": task["id"], "historyLength": 1})
    assert [message["role"] for message in short["history"]] == ["ROLE_AGENT"]
    assert "history" not in (await rest(service, "GET", f"/tasks/{task['id']}?historyLength=0")).json()


async def test_parts_become_content_of_the_message_and_back(service: Service) -> None:
    parts: list[Json] = [
        {"text": "See"},
        {"raw": "aVZCTw==", "mediaType": "image/png"},
        {"url": "https://example.com/a.pdf", "filename": "a.pdf"},
        {"data": {"n": 1}},
    ]
    task = await sent(service, parts=parts)
    run = (await service.call("GET", f"/v1/runs/{task['id']}")).json()
    assert run["input"] == [
        {"type": "text", "text": "See"},
        {"type": "image", "media_type": "image/png", "data": "aVZCTw=="},
        {"type": "file", "media_type": "application/pdf", "name": "a.pdf", "url": "https://example.com/a.pdf"},
        {"type": "text", "text": '{"n":1}'},
    ]
    assert task["history"][0]["parts"][1:3] == [parts[1], {**parts[2], "mediaType": "application/pdf"}]
    unknown = says(parts=[{"raw": "aVZCTw==", "mediaType": "application/x-unknown"}])
    rpc_failed(await rpc(service, "SendMessage", unknown), -32005)
    failed(await rest(service, "POST", "/message:send", json=unknown), 400, "CONTENT_TYPE_NOT_SUPPORTED")
    faults: list[Json] = [
        {},
        {"text": "a", "data": 1},
        {"raw": "?", "mediaType": "image/png"},
        {"url": "file:///a.png"},
    ]
    for wrong in faults:
        error = rpc_failed(await rpc(service, "SendMessage", says(parts=[wrong])), -32602)
        assert error["data"][1]["fieldViolations"]


async def test_a_context_is_a_thread_by_its_id_or_by_the_clients(service: Service) -> None:
    first = await sent(service)
    second = await sent(service, "and?", contextId=first["contextId"])
    assert (second["contextId"], second["id"] == first["id"]) == (first["contextId"], False)
    own = await sent(service, contextId="mine")
    again = await sent(service, "and?", contextId="mine", messageId="m2")
    repeated = await sent(service, "and?", contextId="mine", messageId="m2")
    assert {own["contextId"], again["contextId"]} == {"mine"}
    assert repeated["id"] == again["id"]
    threads = {(await service.call("GET", f"/v1/runs/{task['id']}")).json()["thread_id"] for task in (own, again)}
    assert len(threads) == 1
    listed = await called(service, "ListTasks", {"contextId": "mine"})
    assert {task["id"] for task in listed["tasks"]} == {own["id"], again["id"]}
    assert (await called(service, "ListTasks", {"contextId": "none"}))["tasks"] == []


async def test_a_message_that_one_caller_sends_again_is_the_same_task(service: Service) -> None:
    first = await sent(service, messageId="again")
    assert (await sent(service, messageId="again"))["id"] == first["id"]
    other_words = await sent(service, "something else", messageId="again")
    other_caller = await called(service, "SendMessage", says(messageId="again"), token=token_of(Role.RUNNER))
    assert len({first["id"], other_words["id"], other_caller["task"]["id"]}) == 3


async def test_tasks_are_listed_by_their_last_change_page_by_page(service: Service) -> None:
    tasks = [await sent(service, f"message {number}") for number in range(3)]
    pages: list[Json] = [await called(service, "ListTasks", {"pageSize": 2})]
    pages.append(await called(service, "ListTasks", {"pageSize": 2, "pageToken": pages[0]["nextPageToken"]}))
    assert [len(page["tasks"]) for page in pages] == [2, 1]
    assert {page["totalSize"] for page in pages} == {3}
    assert pages[1]["nextPageToken"] == ""
    found = [task for page in pages for task in page["tasks"]]
    assert {task["id"] for task in found} == {task["id"] for task in tasks}
    moments = [task["status"]["timestamp"] for task in found]
    assert moments == sorted(moments, reverse=True)
    assert all("artifacts" not in task and "history" not in task for task in found)
    whole = await rest(service, "GET", "/tasks?includeArtifacts=true&historyLength=1&status=TASK_STATE_COMPLETED")
    assert all(task["artifacts"] and len(task["history"]) == 1 for task in whole.json()["tasks"])
    assert (await called(service, "ListTasks", {"status": "TASK_STATE_FAILED"}))["totalSize"] == 0
    later = {"statusTimestampAfter": "2999-01-01T00:00:00Z"}
    assert (await called(service, "ListTasks", later))["tasks"] == []
    for wrong in ("pageSize=0", "pageSize=101", "historyLength=-1", "status=WORKING", "pageToken=x"):
        reason = "CURSOR_INVALID" if wrong == "pageToken=x" else "BODY_INVALID"
        failed(await rest(service, "GET", f"/tasks?{wrong}"), 400, reason)
    failed(await rest(service, "GET", "/tasks?pageSize=many"), 400, "PARAMETERS_INVALID")
    failed(await rest(service, "GET", "/tasks?statusTimestampAfter=2026"), 400, "BODY_INVALID")


async def test_a_task_that_rests_is_cancelled_once(service: Service) -> None:
    service.worker.act = Act.REST
    task = await sent(service, configuration={"returnImmediately": True})
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    cancelled = await called(service, "CancelTask", {"id": task["id"]})
    assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"
    rpc_failed(await rpc(service, "CancelTask", {"id": task["id"]}), -32002)
    failed(await rest(service, "POST", f"/tasks/{task['id']}:cancel"), 400, "TASK_NOT_CANCELABLE")
    rpc_failed(await rpc(service, "SubscribeToTask", {"id": task["id"]}), -32004)
    failed(await rest(service, "POST", f"/tasks/{task['id']}:subscribe"), 400, "UNSUPPORTED_OPERATION")
    late = says(taskId=task["id"])
    failed(await rest(service, "POST", "/message:send", json=late), 400, "UNSUPPORTED_OPERATION")


async def test_a_stream_begins_with_the_task_and_ends_with_its_state(service: Service) -> None:
    told = updates(await rest(service, "POST", "/message:stream", json=says()))
    assert told[0]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert [next(iter(update)) for update in told[1:]] == [
        "statusUpdate",
        "artifactUpdate",
        "artifactUpdate",
        "statusUpdate",
    ]
    said = [update["artifactUpdate"] for update in told if "artifactUpdate" in update]
    assert "".join(part["text"] for update in said for part in update["artifact"]["parts"]) == "Done."
    assert [(update.get("append", False), update.get("lastChunk", False)) for update in said] == [
        (False, False),
        (True, True),
    ]
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    by_rpc = updates(await rpc(service, "SendStreamingMessage", says()))
    assert [next(iter(frame["result"])) for frame in by_rpc] == [next(iter(update)) for update in told]
    assert {(frame["jsonrpc"], frame["id"]) for frame in by_rpc} == {("2.0", 7)}


async def test_an_approval_is_decided_by_data_that_names_it(service: Service) -> None:
    service.worker.act = Act.APPROVE
    for approved in (True, False):
        task = await sent(service)
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        text, data = task["status"]["message"]["parts"]
        [asked] = data["data"]["pending"]
        assert (asked["kind"], asked["tool"] in text["text"]) == ("approval", True)
        for unnamed in ({"text": "approve"}, {"data": {"approved": True}}):
            refused = await rpc(service, "SendMessage", says(parts=[unnamed], taskId=task["id"]))
            assert rpc_failed(refused, -32602)["data"][0]["reason"] == "ANSWER_INVALID"
        answer = [{"data": {"id": asked["id"], "approved": approved}}]
        runner = await rpc(service, "SendMessage", says(parts=answer, taskId=task["id"]), token=token_of(Role.RUNNER))
        rpc_failed(runner, -32000, status=403)
        ended = await sent(service, parts=answer, taskId=task["id"], contextId=task["contextId"])
        assert (ended["id"], ended["status"]["state"]) == (task["id"], "TASK_STATE_COMPLETED")


async def test_files_are_left_out_of_a_list_that_asks_for_none_and_are_not_counted(service: Service) -> None:
    service.worker.act = Act.APPROVE
    image = ImageContent(media_type="image/png", url="https://example.com/a.png")
    service.worker.result = ToolResult.succeeded("done", images=(image,) * (MAX_ATTACHMENTS + 1))
    task = await sent(service)
    [asked] = task["status"]["message"]["parts"][1]["data"]["pending"]
    await sent(service, parts=[{"data": {"id": asked["id"], "approved": True}}], taskId=task["id"])
    [whole] = (await called(service, "ListTasks", {"includeArtifacts": True}))["tasks"]
    assert (len(whole["artifacts"]), whole["metadata"]) == (MAX_ATTACHMENTS + 1, {"filesLeftOut": 1})
    for without in ({}, {"historyLength": 1}):
        [listed] = (await called(service, "ListTasks", without))["tasks"]
        assert not {"artifacts", "metadata"} & set(listed)


async def test_a_question_of_a_server_is_answered_by_data_that_names_it(service: Service) -> None:
    service.worker.act = Act.ELICIT
    task = await sent(service)
    text, data = task["status"]["message"]["parts"]
    assert text == {"text": "Which colour?"}
    filled = {"id": data["data"]["pending"][0]["id"], "action": "accept", "content": {"colour": "blue"}}
    answer = says(parts=[{"data": filled}], taskId=task["id"])
    told = updates(await rest(service, "POST", "/message:stream", json=answer))
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    task = await sent(service)
    wrong = says(parts=[{"data": {"id": "other", "action": "accept"}}], taskId=task["id"])
    rpc_failed(await rpc(service, "SendMessage", wrong), -32602)
    elsewhere = says("blue", taskId=task["id"], contextId="elsewhere")
    rpc_failed(await rpc(service, "SendMessage", elsewhere), -32602)


async def test_several_questions_are_answered_by_data_with_their_ids(service: Service) -> None:
    service.worker.act = Act.BOTH
    task = await sent(service)
    asked = task["status"]["message"]["parts"][1]["data"]["pending"]
    assert {question["kind"] for question in asked} == {"approval", "result"}
    rpc_failed(await rpc(service, "SendMessage", says("yes", taskId=task["id"])), -32602)
    given: dict[str, Json] = {"approval": {"approved": True}, "result": {"result": "sent"}}
    answers = [{"data": {"id": question["id"], **given[question["kind"]]}} for question in asked]
    [first, second] = answers
    partly = await sent(service, parts=[first], taskId=task["id"])
    assert partly["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert len(partly["status"]["message"]["parts"][1]["data"]["pending"]) == 1
    ended = await sent(service, parts=[second], taskId=task["id"])
    assert ended["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_subscriber_gets_the_task_as_it_is_and_what_follows(service: Service) -> None:
    service.worker.act = Act.ASK
    task = await sent(service)
    subscriber = Conversation(service.app, "GET", f"{AGENT}/tasks/{task['id']}:subscribe", headers=VERSION)
    subscribing = asyncio.create_task(subscriber.hold())
    async with asyncio.timeout(30):
        await subscriber.received(1)
    await sent(service, "sent", taskId=task["id"])
    await subscribing
    told = [
        json.loads(frame.removeprefix("data: "))
        for frame in b"".join(subscriber.chunks).decode().split("\n\n")
        if frame
    ]
    assert told[0]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_the_protocols_media_type_is_for_clients_that_name_it_and_calls_are_json(service: Service) -> None:
    named = await rest(service, "GET", "/tasks", headers={**VERSION, "Accept": "application/a2a+json"})
    plain = await rest(service, "GET", "/tasks")
    types = [answer.headers["content-type"] for answer in (named, plain)]
    assert types == ["application/a2a+json", "application/json"]
    text = await service.call("POST", AGENT, content=b"{}", headers={**VERSION, "Content-Type": "text/plain"})
    rpc_failed(text, -32005)


async def test_requests_without_the_version_or_in_another_are_refused(service: Service) -> None:
    for version in ({}, {"A2A-Version": ""}, {"A2A-Version": "0.3"}, {"A2A-Version": "1.1"}):
        failed(await rest(service, "GET", "/tasks", headers=version), 400, "VERSION_NOT_SUPPORTED")
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
        rpc_failed(await service.call("POST", AGENT, json=body, headers=version), -32009)
    assert (await rest(service, "GET", "/tasks?A2A-Version=1.0", headers={})).status_code == 200
    assert (await rest(service, "GET", "/tasks", headers={"A2A-Version": "1.0.3"})).status_code == 200


async def test_faults_of_json_rpc_have_its_codes(service: Service) -> None:
    for content, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600)):
        rpc_failed(await service.call("POST", AGENT, content=content, headers=VERSION), code)
    rpc_failed(await rpc(service, "tasks/get", {}), -32601)
    params: object
    for params in ({}, [], "x", {"id": 5}):
        rpc_failed(await rpc(service, "GetTask", params), -32602)
    rpc_failed(await rpc(service, "GetTask", {"id": "run_none"}), -32001)
    rpc_failed(await rpc(service, "SendStreamingMessage", says(taskId="run_none")), -32001)


async def test_a_card_tells_how_to_call_an_agent_and_only_with_a_key_what_it_is(service: Service) -> None:
    path = f"{AGENT}/.well-known/agent-card.json"
    public = await service.call("GET", path, token=None)
    unknown = await service.call("GET", path.replace("guide", "nobody"), token=None)
    assert public.text.replace("guide", "nobody") == unknown.text
    card = public.json()
    assert {each["url"] for each in card["supportedInterfaces"]} == {"https://agents.example.com/a2a/v1/guide"}
    assert "Guides." not in public.text
    known = await service.call("GET", path)
    assert (known.json()["description"], known.headers["Cache-Control"]) == ("Guides.", "private, max-age=60")
    assert (await rest(service, "GET", "/extendedAgentCard")).json() == known.json()
    assert await called(service, "GetExtendedAgentCard") == known.json()
    failed(await service.call("GET", path.replace("guide", "nobody")), 404, "AGENT_NOT_FOUND")
    failed(await service.call("GET", path, token="dgm_unknown"), 401, "TOKEN_INVALID")
    again = await service.call("GET", path, token=None, headers={"If-None-Match": public.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.requirement("C6")
async def test_a_card_names_the_public_address_whatever_host_a_request_names(service: Service) -> None:
    spoofed = {"Host": "agents.example.com", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    card = await service.call("GET", f"{AGENT}/.well-known/agent-card.json", token=None, headers=spoofed)
    assert "evil.example" not in card.text
