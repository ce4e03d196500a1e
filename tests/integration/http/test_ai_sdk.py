"""Chats of the AI SDK at the edge: keys and roles as everywhere, threads by the client's ids."""

import json
from collections.abc import Mapping

import httpx
import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Act, Service, problem_of, token_of

CHAT = "/ai-sdk/v1/guide/chat"
ROUTES = [("POST", CHAT), ("GET", f"{CHAT}/c1"), ("GET", f"{CHAT}/c1/stream"), ("POST", f"{CHAT}/c1/stop")]

pytestmark = pytest.mark.requirement("X3")

Json = Mapping[str, object]


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


def says(text: str, message_id: str = "m1") -> Json:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def asks(*messages: Json, chat: str = "c1", **more: object) -> Json:
    return {"id": chat, "messages": list(messages), "trigger": "submit-message", **more}


def chunks(response: httpx.Response) -> list[Json]:
    assert (response.status_code, response.headers["x-vercel-ai-ui-message-stream"]) == (200, "v1")
    assert response.headers["content-type"].startswith("text/event-stream")
    *frames, last = response.text.strip().split("\n\n")
    assert last == "data: [DONE]"
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def thread_of(answer: list[Json]) -> object:
    about = answer[0]["messageMetadata"]
    assert isinstance(about, dict)
    return about["threadId"]


@pytest.mark.requirement("C6")
async def test_every_route_needs_a_known_key(service: Service) -> None:
    for method, path in ROUTES:
        refused = await service.call(method, path, token="dgm_unknown")
        problem_of(refused, 401, "token_invalid")


@pytest.mark.requirement("C6")
async def test_viewers_read_chats_and_runners_speak(service: Service) -> None:
    viewer, runner = token_of(Role.VIEWER), token_of(Role.RUNNER)
    problem_of(await service.call("POST", CHAT, json=asks(says("hello")), token=viewer), 403, "role_insufficient")
    answer = chunks(await service.call("POST", CHAT, json=asks(says("hello")), token=runner))
    thread = f"{CHAT}/{thread_of(answer)}"
    assert [message["role"] for message in (await service.call("GET", thread, token=viewer)).json()] == [
        "user",
        "assistant",
    ]
    problem_of(await service.call("POST", f"{thread}/stop", token=viewer), 403, "role_insufficient")


@pytest.mark.requirement("C6")
async def test_chats_of_other_keys_and_threads_of_other_organizations_are_not_found(service: Service) -> None:
    mine = chunks(await service.call("POST", CHAT, json=asks(says("hello")), token=token_of(Role.RUNNER)))
    theirs = chunks(await service.call("POST", CHAT, json=asks(says("hello")), token=token_of(Role.ADMIN)))
    assert thread_of(mine) != thread_of(theirs)
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    for method, path in ROUTES[1:]:
        missing = await service.call(method, path.replace("c1", str(thread_of(mine))), token=OTHER_ADMIN)
        problem_of(missing, 404, "thread_not_found")
    named = asks(says("hello"), chat=str(thread_of(mine)))
    problem_of(await service.call("POST", CHAT, json=named, token=OTHER_ADMIN), 404, "thread_not_found")


async def test_an_answer_is_one_message_with_the_id_of_its_run(service: Service) -> None:
    told = chunks(await service.call("POST", CHAT, json=asks(says("hello"))))
    assert [chunk["type"] for chunk in told] == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert told[0]["messageId"] == service.worker.submitted[0]
    assert (told[3]["delta"], told[-1]["finishReason"]) == ("Done.", "stop")


async def test_a_chat_stays_on_its_thread_and_a_message_that_comes_twice_is_answered_once(service: Service) -> None:
    first = await service.call("POST", CHAT, json=asks(says("hello")))
    again = await service.call("POST", CHAT, json=asks(says("hello")))
    second = chunks(await service.call("POST", CHAT, json=asks(says("hello"), says("and?", "m2"))))
    assert again.text == first.text
    assert thread_of(second) == thread_of(chunks(first))
    assert len(service.worker.submitted) == 2
    told = (await service.call("GET", f"{CHAT}/c1")).json()
    assert [[part["text"] for part in message["parts"] if "text" in part] for message in told] == [
        ["hello"],
        ["Done."],
        ["and?"],
        ["Done."],
    ]


async def test_an_edited_message_and_another_answer_begin_a_thread_with_the_messages_before(service: Service) -> None:
    before = [says("hello"), {"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "Done."}]}]
    first = chunks(await service.call("POST", CHAT, json=asks(says("hello"))))
    edited = asks(*before, says("changed", "m2"), messageId="m2")
    again = asks(*before, says("changed", "m2"), trigger="regenerate-message")
    for body in (edited, again):
        answer = chunks(await service.call("POST", CHAT, json=body))
        assert thread_of(answer) != thread_of(first)
        told = (await service.call("GET", f"{CHAT}/c1")).json()
        assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant"]
        first = answer
    after = chunks(await service.call("POST", CHAT, json=asks(says("more", "m3"))))
    assert thread_of(after) == thread_of(first)


async def test_a_decision_resumes_the_run_and_given_again_it_is_answered_the_same(service: Service) -> None:
    service.worker.act = Act.APPROVE
    asked = chunks(await service.call("POST", CHAT, json=asks(says("hello"))))
    [request] = [chunk for chunk in asked if chunk["type"] == "tool-approval-request"]
    [call] = [chunk for chunk in asked if chunk["type"] == "tool-input-available"]
    assert (asked[-1]["finishReason"], call["dynamic"], call["providerExecuted"]) == ("tool-calls", True, True)
    part = {
        "type": "dynamic-tool",
        "toolName": call["toolName"],
        "toolCallId": request["toolCallId"],
        "state": "approval-responded",
        "approval": {"id": request["approvalId"], "approved": False, "reason": "Not that."},
    }
    decided = asks(says("hello"), {"id": "a1", "role": "assistant", "parts": [part]})
    refused = await service.call("POST", CHAT, json=decided, token=token_of(Role.RUNNER))
    problem_of(refused, 404, "thread_not_found")  # the chat of another key
    waiting = await service.call("POST", CHAT, json=asks(says("and?", "m2")))
    problem_of(waiting, 409, "thread_busy")
    unclear = asks(
        says("hello"), {"id": "a1", "role": "assistant", "parts": [{**part, "approval": {"approved": "no"}}]}
    )
    problem_of(await service.call("POST", CHAT, json=unclear), 422, "body_invalid")
    service.worker.act = Act.FINISH
    answer = await service.call("POST", CHAT, json=decided)
    kinds = [chunk["type"] for chunk in chunks(answer)]
    assert kinds[:3] == ["start", "tool-approval-response", "tool-output-denied"]
    assert kinds[-1] == "finish"
    assert (await service.call("POST", CHAT, json=decided)).text == answer.text
    whole = chunks(await service.call("GET", f"{CHAT}/c1/stream"))
    assert whole == [*asked[:-2], *chunks(answer)[1:]]
    [_, told] = (await service.call("GET", f"{CHAT}/c1")).json()
    assert [part["state"] for part in told["parts"] if part["type"] == "dynamic-tool"] == ["output-denied"]


async def test_results_of_the_clients_tools_resume_the_run(service: Service) -> None:
    service.worker.act = Act.ASK
    asked = chunks(await service.call("POST", CHAT, json=asks(says("hello"))))
    [call] = [chunk for chunk in asked if chunk["type"] == "tool-input-available"]
    assert (call["dynamic"], call["providerExecuted"]) == (False, False)
    part = {"type": f"tool-{call['toolName']}", "toolCallId": call["toolCallId"], "state": "output-available"}
    result = {"id": "a1", "role": "assistant", "parts": [{**part, "output": {"sent": True}}]}
    answer = chunks(await service.call("POST", CHAT, json=asks(says("hello"), result)))
    assert (answer[1]["type"], json.loads(str(answer[1]["output"]))) == ("tool-output-available", {"sent": True})
    unknown = {"id": "a1", "role": "assistant", "parts": [{**part, "toolCallId": "call_other", "output": 1}]}
    refused = await service.call("POST", CHAT, json=asks(says("hello"), unknown))
    problem_of(refused, 422, "tool_call_not_pending")


async def test_an_answer_that_still_waits_ends_for_the_other_call(service: Service) -> None:
    service.worker.act = Act.BOTH
    asked = chunks(await service.call("POST", CHAT, json=asks(says("hello"))))
    [call] = [chunk for chunk in asked if chunk.get("providerExecuted") is False]
    part = {"type": f"tool-{call['toolName']}", "toolCallId": call["toolCallId"], "state": "output-available"}
    result = {"id": "a1", "role": "assistant", "parts": [{**part, "output": {"sent": True}}]}
    answer = chunks(await service.call("POST", CHAT, json=asks(says("hello"), result)))
    assert [(chunk["type"], chunk.get("finishReason")) for chunk in answer[1:]] == [
        ("finish-step", None),
        ("finish", "tool-calls"),
    ]
    again = chunks(await service.call("GET", f"{CHAT}/c1/stream"))
    assert [chunk["type"] for chunk in again] == [chunk["type"] for chunk in asked]


async def test_nothing_is_read_again_before_the_first_message_and_long_after_the_last(service: Service) -> None:
    assert (await service.call("GET", f"{CHAT}/c1/stream")).status_code == 204
    answer = await service.call("POST", CHAT, json=asks(says("hello")))
    assert (await service.call("GET", f"{CHAT}/c1/stream")).text == answer.text
    service.clock.advance(660)
    assert (await service.call("GET", f"{CHAT}/c1/stream")).status_code == 204
    assert (await service.call("GET", f"{CHAT}/c2")).json() == []


async def test_stopping_cancels_the_run_of_the_chat(service: Service) -> None:
    service.worker.act = Act.APPROVE
    await service.call("POST", CHAT, json=asks(says("hello")))
    assert (await service.call("POST", f"{CHAT}/c1/stop")).status_code == 204
    stopped = chunks(await service.call("GET", f"{CHAT}/c1/stream"))
    assert [chunk["type"] for chunk in stopped][-2:] == ["tool-output-denied", "abort"]
    problem_of(await service.call("POST", f"{CHAT}/c2/stop"), 404, "thread_not_found")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"role": "system", "parts": [{"type": "text", "text": "Be kind."}]}, "body_invalid"),
        ({"role": "user", "parts": [{"type": "file", "mediaType": "image/png", "url": 1}]}, "body_invalid"),
        ({"role": "user", "parts": []}, "input_empty"),
        ({"role": "someone", "parts": []}, "body_invalid"),
    ],
)
async def test_messages_that_say_nothing_are_refused(service: Service, message: Json, code: str) -> None:
    problem_of(await service.call("POST", CHAT, json=asks({"id": "m1", **message})), 422, code)
    assert service.worker.submitted == []
