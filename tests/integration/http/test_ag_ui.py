"""Runs of AG-UI at the edge: keys and roles as everywhere, threads by the client's ids."""

import json
from collections.abc import Mapping

import httpx
import pytest

from domain.identity.role import Role
from domain.ids import message_id
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import RunStatus
from domain.runs.run_events import message_discarded
from domain.runs.step import Step
from tests.builders import ORG, START
from tests.composition import MODEL
from tests.contract.run_steps import claim, finish_step, reply_step
from tests.integration.http.service import OTHER_ADMIN, Act, Service, problem_of, token_of

RUN = "/ag-ui/v1/guide"
ROUTES = [RUN, f"{RUN}/connect", f"{RUN}/threads/t1/stop"]

pytestmark = pytest.mark.requirement("X4")

Json = Mapping[str, object]


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


def says(text: object, message_id: str = "m1") -> Json:
    return {"id": message_id, "role": "user", "content": text}


def asks(*messages: Json, thread: str = "t1", run: str = "r1", **more: object) -> Json:
    return {"threadId": thread, "runId": run, "messages": messages, "tools": [], "context": [], **more}


def events(response: httpx.Response) -> list[dict[str, object]]:
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(frame.removeprefix("data: ")) for frame in response.text.strip().split("\n\n")]


def thread_of(told: list[dict[str, object]]) -> object:
    about = told[0]["metadata"]
    assert isinstance(about, dict)
    return about["threadId"]


@pytest.mark.requirement("C6")
async def test_every_route_needs_a_known_key_and_the_right_role(service: Service) -> None:
    for path in ROUTES:
        problem_of(await service.call("POST", path, json=asks(), token="dgm_unknown"), 401, "token_invalid")
    viewer = token_of(Role.VIEWER)
    problem_of(await service.call("POST", RUN, json=asks(says("hello")), token=viewer), 403, "role_insufficient")
    thread = str(thread_of(events(await service.call("POST", RUN, json=asks(says("hello"))))))
    assert events(await service.call("POST", ROUTES[1], json=asks(thread=thread), token=viewer))
    problem_of(await service.call("POST", f"{RUN}/threads/{thread}/stop", token=viewer), 403, "role_insufficient")


@pytest.mark.requirement("C6")
async def test_threads_of_another_organization_are_not_found(service: Service) -> None:
    thread = str(thread_of(events(await service.call("POST", RUN, json=asks(says("hello"))))))
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    for path in (RUN, f"{RUN}/connect", f"{RUN}/threads/{thread}/stop"):
        missing = await service.call("POST", path, json=asks(says("hello"), thread=thread), token=OTHER_ADMIN)
        problem_of(missing, 404, "thread_not_found")


async def test_a_thread_is_read_again_with_its_messages_and_its_newest_run(service: Service) -> None:
    nothing = events(await service.call("POST", ROUTES[1], json=asks()))
    assert [event["type"] for event in nothing] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    image = {"type": "image", "source": {"type": "data", "value": "iVBO", "mimeType": "image/png"}}
    first = events(await service.call("POST", RUN, json=asks(says([{"type": "text", "text": "See"}, image]))))
    again = await service.call("POST", RUN, json=asks(says([{"type": "text", "text": "See"}, image])))
    assert events(again) == first
    second = events(await service.call("POST", RUN, json=asks(says("hello"), says("and?", "m2"), run="r2")))
    assert thread_of(second) == thread_of(first)
    assert len(service.worker.submitted) == 2
    _, snapshot, *rest = events(await service.call("POST", ROUTES[1], json=asks(run="r2")))
    assert rest == second[1:]
    messages = snapshot["messages"]
    assert isinstance(messages, list)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", [{"type": "text", "text": "See"}, image]),
        ("assistant", "Done."),
        ("user", "and?"),
    ]


async def test_a_call_without_a_result_does_not_end_the_chat(service: Service) -> None:
    service.worker.act = Act.ASK
    asked = events(await service.call("POST", RUN, json=asks(says("hello"))))
    [begun] = [event for event in asked if event["type"] == "TOOL_CALL_START"]
    call = {"id": begun["toolCallId"], "type": "function", "function": {"name": "show", "arguments": "{}"}}
    history = [says("hello"), {"id": "m2", "role": "assistant", "toolCalls": [call]}, says("and?", "m3")]
    service.worker.act = Act.FINISH
    second = events(await service.call("POST", RUN, json=asks(*history, run="r2")))
    assert (thread_of(second), second[-1]["outcome"]) == (thread_of(asked), {"type": "success"})
    fresh = events(await service.call("POST", RUN, json=asks(*history, thread="t2", run="r3")))
    assert fresh[-1]["outcome"] == {"type": "success"}


async def test_a_message_is_refused_while_a_call_waits_for_a_decision(service: Service) -> None:
    service.worker.act = Act.APPROVE
    asked = events(await service.call("POST", RUN, json=asks(says("hello"))))
    [begun] = [event for event in asked if event["type"] == "TOOL_CALL_START"]
    call = {"id": begun["toolCallId"], "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [says("hello"), {"id": "m2", "role": "assistant", "toolCalls": [call]}, says("and?", "m3")]
    problem_of(await service.call("POST", RUN, json=asks(*history, run="r2")), 409, "thread_busy")


async def test_a_run_that_is_queued_is_read_again_with_its_message_and_those_of_the_system(service: Service) -> None:
    system = {"id": "m0", "role": "system", "content": "Be kind."}
    thread = thread_of(events(await service.call("POST", RUN, json=asks(says("hello")))))
    service.worker.act = Act.REST
    await service.call("POST", f"/v1/threads/{thread}/runs", json={"agent": "guide", "input": "and?"})
    await service.call("POST", f"/v1/runs/{service.worker.submitted[-1]}/cancel")
    _, snapshot, *_ = events(await service.call("POST", f"{RUN}/connect", json=asks(system)))
    messages = snapshot["messages"]
    assert isinstance(messages, list)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("system", "Be kind."),
        ("user", "hello"),
        ("assistant", "Done."),
        ("user", "and?"),
    ]


async def test_a_reply_that_was_discarded_is_taken_back_by_messages_that_no_later_event_repeats(
    service: Service,
) -> None:
    service.worker.act = Act.REST
    thread = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()["thread_id"]
    [run_id] = service.worker.submitted
    claimed = await claim(service.stores, run_id)
    lost = message_id(run_id, 1, "assistant", 1)
    said = NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": lost, "text": "Ha"})
    taken = message_discarded(lost, reason="worker_lost", at=START)
    await service.stores.journal.commit(claimed.lease, Step(run=claimed.run, events=(said, taken)))
    reply = reply_step(claimed.run, text="Done.")
    await service.stores.journal.commit(claimed.lease, reply)
    await service.stores.journal.commit(claimed.lease, finish_step(reply.run))
    told = events(await service.call("POST", f"{RUN}/connect", json=asks(thread=thread)))
    first, second = [event["messages"] for event in told if event["type"] == "MESSAGES_SNAPSHOT"]
    assert isinstance(first, list)
    assert ([message["content"] for message in first], second) == (["hello"], first)
    assert [event["delta"] for event in told if event["type"] == "TEXT_MESSAGE_CONTENT"] == ["Ha", "Done."]


async def test_context_state_and_messages_of_the_system_are_instructions(service: Service) -> None:
    system = {"id": "m0", "role": "system", "content": "Be kind."}
    context = [{"description": "Page", "value": "home"}]
    activity = {"id": "m9", "role": "activity", "activityType": "PROGRESS", "content": {}}
    body = asks(system, activity, says("hello"), context=context, state={"theme": "dark"})
    told = events(await service.call("POST", RUN, json=body))
    assert told[1] == {"type": "STATE_SNAPSHOT", "snapshot": {"theme": "dark"}}
    run = await service.stores.runs.get(ORG, service.worker.submitted[0])
    assert run is not None
    assert run.instructions == 'Be kind.\n\nPage: home\n\nState of the application: {"theme": "dark"}'


async def test_a_question_of_a_server_is_an_interrupt_with_its_form(service: Service) -> None:
    service.worker.act = Act.ELICIT
    told = events(await service.call("POST", RUN, json=asks(says("hello"))))
    outcome = told[-1]["outcome"]
    assert isinstance(outcome, dict)
    [interrupt] = outcome["interrupts"]
    assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Which colour?")
    assert interrupt["responseSchema"]["required"] == ["colour"]
    answer = {"interruptId": interrupt["id"], "status": "resolved"}
    wrong = asks(says("hello"), run="r2", resume=[{**answer, "payload": {"shade": 1}}])
    problem_of(await service.call("POST", RUN, json=wrong), 422, "elicitation_answer_invalid")
    service.worker.act = Act.FINISH
    right = asks(says("hello"), run="r2", resume=[{**answer, "payload": {"colour": "red"}}])
    rest = events(await service.call("POST", RUN, json=right))
    assert rest[-1]["outcome"] == {"type": "success"}
    run = await service.stores.runs.get(ORG, service.worker.submitted[0])
    assert run is not None
    assert (run.status, run.output) == (RunStatus.COMPLETED, "Done.")
    assert events(await service.call("POST", RUN, json=right)) == rest
    other = [{"interruptId": f"{interrupt['toolCallId']}:size", "status": "resolved", "payload": {"size": 1}}]
    problem_of(await service.call("POST", RUN, json=asks(resume=other)), 422, "tool_call_not_pending")
    problem_of(await service.call("POST", RUN, json=asks(run="r3")), 422, "body_invalid")


async def test_a_chat_is_that_of_one_agent_and_a_reused_name_of_a_run_hides_no_message(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "other", "model": MODEL})
    first = events(await service.call("POST", RUN, json=asks(says("hello"))))
    other = events(await service.call("POST", "/ag-ui/v1/other", json=asks(says("hello"))))
    assert thread_of(other) != thread_of(first)
    changed = events(await service.call("POST", RUN, json=asks(says("something else"))))
    assert (thread_of(changed), changed[0]["metadata"] == first[0]["metadata"]) == (thread_of(first), False)
    chat = {"id": "t1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]}
    assert (await service.call("POST", "/ai-sdk/v1/guide/chat", json=chat)).status_code == 200
    assert len(set(service.worker.submitted)) == 4
    runs = [await service.stores.runs.get(ORG, run_id) for run_id in service.worker.submitted]
    assert len({run.thread_id for run in runs if run is not None}) == 3
    nothing = events(await service.call("POST", "/ag-ui/v1/third/connect", json=asks()))
    assert nothing[1]["messages"] == []


async def test_a_queued_message_does_not_hide_the_run_that_waits(service: Service) -> None:
    service.worker.act = Act.APPROVE
    asked = events(await service.call("POST", RUN, json=asks(says("hello"))))
    service.worker.act = Act.REST
    behind = await service.call(
        "POST", f"/v1/threads/{thread_of(asked)}/runs", json={"agent": "guide", "input": "and?"}
    )
    assert behind.json()["status"] == "queued"
    again = events(await service.call("POST", f"{RUN}/connect", json=asks()))
    assert again[-1]["outcome"] == asked[-1]["outcome"]
    problem_of(await service.call("POST", RUN, json=asks(says("more", "m3"), run="r3")), 409, "thread_busy")
    assert (await service.call("POST", f"{RUN}/threads/t1/stop")).status_code == 204
    run = await service.stores.runs.get(ORG, service.worker.submitted[0])
    assert run is not None
    assert run.status is RunStatus.CANCELLED


async def test_a_run_that_still_waits_says_for_what(service: Service) -> None:
    service.worker.act = Act.BOTH
    for thread, settles_first in (("t1", "interrupt"), ("t2", "result")):
        asked = events(await service.call("POST", RUN, json=asks(says("hello"), thread=thread)))
        outcome = asked[-1]["outcome"]
        assert isinstance(outcome, dict)
        [interrupt] = outcome["interrupts"]
        [own] = {event["toolCallId"] for event in asked if "toolCallId" in event} - {interrupt["toolCallId"]}
        resume = [{"interruptId": interrupt["id"], "status": "cancelled"}]
        result = {"id": "m2", "role": "tool", "toolCallId": own, "content": "sent"}
        denial, sent = asks(says("hello"), resume=resume, thread=thread), asks(says("hello"), result, thread=thread)
        by_what = {"interrupt": (denial, {"type": "success", "pendingToolCallIds": [own]}), "result": (sent, outcome)}
        body, left = by_what[settles_first]
        for path in (RUN, RUN, f"{RUN}/connect"):
            assert events(await service.call("POST", path, json=body))[-1].get("outcome") == left


async def test_answers_to_calls_of_no_run_are_refused(service: Service) -> None:
    resume = [{"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}]
    problem_of(await service.call("POST", RUN, json=asks(resume=resume)), 404, "thread_not_found")
    await service.call("POST", RUN, json=asks(says("hello")))
    problem_of(await service.call("POST", RUN, json=asks(resume=resume)), 422, "tool_call_not_pending")
