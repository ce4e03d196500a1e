"""Threads and runs over HTTP; a worker that does as it is told executes them."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from domain.identity.role import Role
from domain.json_value import JsonObject
from tests.composition import MODEL
from tests.integration.http.service import Act, Conversation, Service, paths_of, problem_of, token_of


@pytest.fixture(autouse=True)
async def agent(service: Service) -> str:
    """The id of an agent `guide`."""
    created = await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    return str(created.json()["id"])


RUN: dict[str, object] = {"agent": "guide", "input": "hello"}


@pytest.mark.requirement("K2")
async def test_a_run_beyond_the_bound_of_the_queue_is_told_its_position_and_when_to_try_again(service: Service) -> None:
    service.worker.act = Act.REST
    await service.call("PATCH", "/v1/agents/guide", json={"max_queued": 1})
    assert (await service.call("POST", "/v1/runs", json=RUN)).status_code == 202
    refused = await service.call("POST", "/v1/runs", json=RUN)
    problem = problem_of(refused, 429, "queue_full")
    assert (problem["position"], problem["limited"], refused.headers["retry-after"]) == (2, "agent", "1")
    assert problem["retry_after_s"] == 1
    assert len(service.worker.submitted) == 1
    await service.call("PATCH", "/v1/agents/guide", json={"max_queued": None})
    assert (await service.call("POST", "/v1/runs", json=RUN)).status_code == 202


@pytest.mark.requirement("E1")
async def test_a_run_is_started_in_the_background(service: Service, agent: str) -> None:
    service.worker.act = Act.REST
    body = {
        **RUN,
        "lane": "interactive",
        "metadata": {"source": "test"},
        "limits": {"max_turns": 2},
        "tool_allowlist": [],
        "output_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    started = await service.call("POST", "/v1/runs", json=body)
    run = started.json()
    assert (started.status_code, started.headers["location"]) == (202, f"/v1/runs/{run['id']}")
    assert run == {
        "id": run["id"],
        "thread_id": run["thread_id"],
        "agent_id": agent,
        "agent_version": 1,
        "status": "queued",
        "lane": "interactive",
        "model": MODEL,
        "input": [{"type": "text", "text": "hello"}],
        "output_schema": body["output_schema"],
        "output": None,
        "output_json": None,
        "error": None,
        "incomplete_reason": None,
        "pending": [],
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": 0.0,
            "turns": 0,
            "tool_calls": 0,
            "estimated": False,
        },
        "attempt": 0,
        "created_at": run["created_at"],
        "started_at": None,
        "finished_at": None,
        "metadata": {"source": "test"},
        "started_by": "key_admin",
        "retry_of": None,
    }
    assert service.worker.submitted == [run["id"]]
    stored = service.state.runs[service.worker.submitted[0]].run
    assert (stored.limits.max_turns, stored.tool_allowlist) == (2, ())
    assert (await service.call("GET", f"/v1/runs/{run['id']}")).json() == run


@pytest.mark.requirement("E1")
async def test_a_run_is_started_on_the_thread_that_its_body_names(service: Service, agent: str) -> None:
    thread, other = [(await service.call("POST", "/v1/threads")).json()["id"] for _ in range(2)]
    body = {**RUN, "thread_id": thread}
    assert (await service.call("POST", "/v1/runs", json=body)).json()["thread_id"] == thread
    assert (await service.call("POST", f"/v1/threads/{thread}/runs", json=body)).json()["thread_id"] == thread
    refused = problem_of(await service.call("POST", f"/v1/threads/{other}/runs", json=body), 422, "body_invalid")
    assert paths_of(refused) == ["thread_id"]
    unknown = await service.call("POST", "/v1/runs", json={**RUN, "thread_id": "thr_none"})
    problem_of(unknown, 404, "thread_not_found")


@pytest.mark.requirement("E1")
async def test_waiting_gives_the_finished_run_and_its_messages(service: Service) -> None:
    answer = await service.call("POST", "/v1/runs/wait", json=RUN)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    run, messages = answer.json()["run"], answer.json()["messages"]
    assert (run["status"], run["output"], run["usage"]["cost_usd"]) == ("completed", "Done.", 0.001)
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert {message["run_id"] for message in messages} == {run["id"]}
    assert answer.headers["location"] == f"/v1/runs/{run['id']}"
    assert (await service.call("GET", f"/v1/runs/{run['id']}/wait")).json() == answer.json()


@pytest.mark.requirement("E1")
async def test_runs_of_a_thread_share_its_messages_and_answer_with_their_own(service: Service) -> None:
    thread = (await service.call("POST", "/v1/threads")).json()["id"]
    for number in range(2):
        answer = await service.call("POST", f"/v1/threads/{thread}/runs/wait", json={**RUN, "input": f"{number}"})
        assert (answer.json()["run"]["thread_id"], len(answer.json()["messages"])) == (thread, 2)
    listed = (await service.call("GET", f"/v1/threads/{thread}/messages")).json()["data"]
    assert [message["role"] for message in listed] == ["user", "assistant"] * 2


async def test_waiting_no_longer_than_asked_for_gives_the_run_as_it_stands(service: Service) -> None:
    service.worker.act = Act.REST
    run = (await service.call("POST", "/v1/runs", json=RUN)).json()
    answer = await service.call("GET", f"/v1/runs/{run['id']}/wait?timeout_s=0")
    assert answer.json() == {"run": run, "messages": []}


@pytest.mark.requirement("E5")
async def test_a_repeated_request_gives_its_run_whatever_became_of_the_agent(service: Service) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await service.call("POST", "/v1/runs", json=RUN, headers=headers)
    await service.call("PATCH", "/v1/agents/guide", json={"enabled": False})
    again = await service.call("POST", "/v1/runs", json=RUN, headers=headers)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert again.json()["id"] == first.json()["id"]
    problem_of(await service.call("POST", "/v1/runs", json=RUN), 409, "agent_disabled")


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("path", ["/v1/runs/wait", "/v1/threads/{thread}/runs/wait", "/v1/runs/{run}/wait"])
async def test_a_wait_ends_when_its_client_leaves_and_the_run_goes_on(service: Service, path: str) -> None:
    service.worker.act = Act.REST
    named = (await service.call("POST", "/v1/runs", json=RUN)).json()
    thread = (await service.call("POST", "/v1/threads")).json()["id"]

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(RUN).encode()

    existing = "{run}" in path
    conversation = Conversation(
        service.app,
        "GET" if existing else "POST",
        path.format(run=named["id"], thread=thread),
        headers={"content-type": "application/json"},
        body=None if existing else body(),
    )
    conversation.left.set()
    await asyncio.wait_for(conversation.hold(), 60)
    assert service.wakeups.topic_count == 0
    run_id = service.worker.submitted[-1]
    assert (await service.call("GET", f"/v1/runs/{run_id}")).json()["status"] == "queued"


@pytest.mark.requirement("D5")
async def test_a_run_that_shows_something_waits_for_the_client_and_goes_on_with_its_result(service: Service) -> None:
    service.worker.act = Act.ASK
    waiting = (await service.call("POST", "/v1/runs/wait", json=RUN)).json()["run"]
    assert waiting["status"] == "requires_action"
    [call] = waiting["pending"]
    assert (call["type"], call["name"], call["params"]["to"]) == ("tool_use", "send_email", "ada@example.org")
    resume = f"/v1/runs/{waiting['id']}/resume"
    unknown = {"tool_results": [{"tool_call_id": "call_nobody", "result": None}]}
    problem_of(await service.call("POST", resume, json=unknown), 422, "tool_call_not_pending")
    body = {"tool_results": [{"tool_call_id": call["id"], "result": {"sent": True}}]}
    resumed = await service.call("POST", resume, json=body)
    assert (resumed.status_code, resumed.json()["pending"]) == (200, [])
    ended = (await service.call("GET", f"/v1/runs/{waiting['id']}/wait")).json()
    assert ended["run"]["status"] == "completed"
    results = [part for message in ended["messages"] for part in message["content"] if part["type"] == "tool_result"]
    assert [(part["tool_id"], part["is_error"]) for part in results] == [(call["id"], False)]
    problem_of(await service.call("POST", resume, json=body), 409, "run_not_waiting")


async def test_a_queued_run_is_cancelled_at_once_and_cancelling_again_changes_nothing(service: Service) -> None:
    service.worker.act = Act.REST
    run = (await service.call("POST", "/v1/runs", json=RUN)).json()
    cancelled = await service.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (await service.call("POST", f"/v1/runs/{run['id']}/cancel")).json() == cancelled.json()


@pytest.mark.requirement("E5")
async def test_the_same_idempotency_key_with_the_same_body_gives_the_same_run(service: Service) -> None:
    service.worker.act = Act.REST
    headers = {"Idempotency-Key": "abc"}
    first = await service.call("POST", "/v1/runs", json=RUN, headers=headers)
    spaced = b'{ "input": "hello",\n "agent": "guide" }'
    again = await service.call("POST", "/v1/runs", content=spaced, headers=headers)
    assert (again.status_code, again.json()) == (202, first.json())
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert len(service.worker.submitted) == 1
    other = await service.call("POST", "/v1/runs", json={**RUN, "input": "bye"}, headers=headers)
    problem_of(other, 422, "idempotency_key_reused")
    elsewhere = f"/v1/threads/{first.json()['thread_id']}/runs"
    problem_of(await service.call("POST", elsewhere, json=RUN, headers=headers), 422, "idempotency_key_reused")


@pytest.mark.requirement("E1", "E5")
@pytest.mark.parametrize("on_a_thread", [False, True])
async def test_one_idempotency_key_gives_one_run_in_the_background_awaited_and_streamed(
    service: Service, on_a_thread: bool
) -> None:
    start = "/v1"
    if on_a_thread:
        start = f"/v1/threads/{(await service.call('POST', '/v1/threads', json={})).json()['id']}"
    headers = {"Idempotency-Key": "abc"}
    streamed = await service.call("POST", f"{start}/runs/stream", json=RUN, headers=headers)
    awaited = (await service.call("POST", f"{start}/runs/wait", json=RUN, headers=headers)).json()["run"]
    told = (await service.call("POST", f"{start}/runs", json=RUN, headers=headers)).json()
    assert awaited["status"] == told["status"] == "completed"
    assert awaited["id"] == told["id"]
    assert f'"run_id":"{told["id"]}"' in streamed.text
    assert len(service.worker.submitted) == 1
    for path in ("runs", "runs/wait", "runs/stream"):
        other = await service.call("POST", f"{start}/{path}", json={**RUN, "input": "bye"}, headers=headers)
        problem_of(other, 422, "idempotency_key_reused")
    assert len((await service.call("GET", "/v1/runs")).json()["data"]) == 1


@pytest.mark.requirement("E5")
async def test_a_busy_thread_refuses_a_run_that_does_not_want_to_queue_and_names_the_one_in_the_way(
    service: Service,
) -> None:
    service.worker.act = Act.REST
    run = (await service.call("POST", "/v1/runs", json=RUN)).json()
    thread = f"/v1/threads/{run['thread_id']}"
    refused = await service.call("POST", f"{thread}/runs", json={**RUN, "multitask_strategy": "reject"})
    assert problem_of(refused, 409, "thread_busy")["run_id"] == run["id"]
    said = await service.call("POST", f"{thread}/messages", json={"role": "user", "content": "hi"})
    assert problem_of(said, 409, "thread_busy")["run_id"] == run["id"]
    problem_of(await service.call("DELETE", thread), 409, "thread_busy")
    problem_of(await service.call("DELETE", "/v1/agents/guide"), 409, "agent_busy")


@pytest.mark.requirement("E5", "C6")
@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_runner_does_not_end_the_run_of_another_key_by_a_run_on_its_thread(
    service: Service, strategy: str
) -> None:
    service.worker.act = Act.REST
    run = (await service.call("POST", "/v1/runs", json=RUN)).json()
    body = {**RUN, "multitask_strategy": strategy}
    runs, runner = f"/v1/threads/{run['thread_id']}/runs", token_of(Role.RUNNER)
    for path in (runs, f"{runs}/wait", f"{runs}/stream"):
        problem_of(await service.call("POST", path, json=body, token=runner), 403, "run_not_yours")
    assert (await service.call("GET", f"/v1/runs/{run['id']}")).json() == run
    allowed = await service.call("POST", runs, json=body, token=token_of(Role.OPERATOR))
    assert allowed.status_code == 202
    assert (await service.call("GET", f"/v1/runs/{run['id']}")).json()["status"] == "cancelled"


async def test_runs_are_listed_by_thread_agent_and_status(service: Service, agent: str) -> None:
    done = (await service.call("POST", "/v1/runs/wait", json=RUN)).json()["run"]
    service.worker.act = Act.REST
    queued = (await service.call("POST", "/v1/runs", json={"agent_id": agent, "input": "later"})).json()

    async def listed(query: str) -> list[str]:
        return [run["id"] for run in (await service.call("GET", f"/v1/runs{query}")).json()["data"]]

    assert await listed("") == [queued["id"], done["id"]]
    assert await listed("?status=completed") == [done["id"]]
    assert await listed(f"?thread_id={queued['thread_id']}") == [queued["id"]]
    assert await listed(f"?agent_id={agent}&status=queued") == [queued["id"]]
    assert await listed("?agent_id=agt_nobody") == []


@pytest.mark.requirement("E2")
async def test_events_are_listed_in_pages_after_a_seq(service: Service) -> None:
    run = (await service.call("POST", "/v1/runs/wait", json=RUN)).json()["run"]
    path = f"/v1/runs/{run['id']}/events"
    everything = (await service.call("GET", path)).json()
    assert [event["seq"] for event in everything["data"]] == list(range(1, len(everything["data"]) + 1))
    assert everything["data"][0]["type"] == "run.queued"
    assert everything["data"][-1]["type"] == "run.completed"
    assert everything["next_cursor"] is None
    first = (await service.call("GET", f"{path}?limit=2")).json()
    assert (first["data"], first["next_cursor"]) == (everything["data"][:2], "2")
    for rest in (f"{path}?cursor={first['next_cursor']}", f"{path}?after=2"):
        assert (await service.call("GET", rest)).json()["data"] == everything["data"][2:]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"agent": "nobody", "input": "hi"}, 404, "agent_not_found", id="unknown agent"),
        pytest.param({**RUN, "model": "openai:gpt-9"}, 403, "model_not_allowed", id="foreign model"),
        pytest.param({**RUN, "input": []}, 422, "input_empty", id="nothing said"),
        pytest.param({"input": "hi"}, 422, "body_invalid", id="no agent"),
        pytest.param({**RUN, "agent_id": "agt_1"}, 422, "body_invalid", id="two agents"),
    ],
)
async def test_a_run_that_cannot_be_is_refused_and_leaves_nothing(
    service: Service, body: dict[str, object], status: int, code: str
) -> None:
    for path in ("/v1/runs", "/v1/runs/wait", "/v1/runs/stream"):
        problem_of(await service.call("POST", path, json=body), status, code)
    assert (service.state.runs, service.state.threads, service.worker.submitted) == ({}, {}, [])


async def test_a_run_on_an_unknown_thread_is_refused(service: Service) -> None:
    problem_of(await service.call("POST", "/v1/threads/thr_nobody/runs", json=RUN), 404, "thread_not_found")


@pytest.mark.parametrize("path", ["", "/wait", "/stream", "/events"])
async def test_an_unknown_run_is_not_found(service: Service, path: str) -> None:
    problem_of(await service.call("GET", f"/v1/runs/run_nobody{path}"), 404, "run_not_found")


@pytest.mark.parametrize(
    ("parts", "paths"),
    [
        pytest.param([{"type": "text"}], ["input.0.text"], id="no text"),
        pytest.param([{"type": "text", "text": "a", "txt": "b"}], ["input.0.txt"], id="typo in a part"),
        pytest.param([{"type": "video", "url": "https://x"}], ["input.0"], id="unknown type"),
        pytest.param([{"type": "tool_result", "tool_id": "x", "result": "y"}], ["input.0"], id="tool result"),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "image", "media_type": "image/png"}], ["input.1"], id="empty image"
        ),
        pytest.param([{"type": "image", "media_type": "image/png", "data": "%%%"}], ["input.0"], id="not base64"),
        pytest.param(
            [{"type": "image", "media_type": "text/html", "url": "file:///etc/passwd"}],
            ["input.0.media_type", "input.0.url"],
            id="not an image by the web",
        ),
        pytest.param(7, ["input"], id="neither text nor parts"),
    ],
)
async def test_input_that_is_not_content_is_refused_with_its_path(
    service: Service, parts: object, paths: list[str]
) -> None:
    response = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": parts})
    assert paths_of(problem_of(response, 422, "body_invalid")) == paths


@pytest.mark.requirement("B4", "C5")
async def test_a_run_whose_tool_asks_for_input_is_resumed_with_an_answer_that_fits(service: Service) -> None:
    service.worker.act = Act.ELICIT
    waiting = (await service.call("POST", "/v1/runs/wait", json=RUN)).json()["run"]
    [use] = waiting["pending"]
    assert waiting["status"] == "requires_action"
    assert (use["type"], use["elicitation"]["message"]) == ("tool_use", "Which colour?")
    assert use["elicitation"]["schema"]["required"] == ["colour"]
    resume = f"/v1/runs/{waiting['id']}/resume"

    def answering(content: JsonObject) -> JsonObject:
        result: JsonObject = {"action": "accept", "content": content}
        return {"tool_results": [{"tool_call_id": use["id"], "result": result}]}

    refused = await service.call("POST", resume, json=answering({"colour": 7}))
    assert paths_of(problem_of(refused, 422, "elicitation_answer_invalid")) == ["tool_results.0.result.content"]
    assert (await service.call("GET", f"/v1/runs/{waiting['id']}")).json() == waiting

    service.worker.act = Act.REST
    resumed = await service.call("POST", resume, json=answering({"colour": "red"}))
    assert (resumed.status_code, resumed.json()["status"], resumed.json()["pending"]) == (200, "queued", [])
    problem_of(await service.call("POST", resume, json=answering({"colour": "red"})), 409, "run_not_waiting")
