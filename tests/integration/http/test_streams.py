"""Streams of runs: complete, in order, resumable at every point, and over as soon as the client
leaves."""

import asyncio
import json
import logging
from dataclasses import dataclass

import pytest

from application.runs.queries import GetRun
from tests.composition import MODEL
from tests.contract.run_steps import claim, finish_step, reply_step
from tests.integration.http.service import (
    OTHER_ADMIN,
    Act,
    Conversation,
    Harness,
    Service,
    paths_of,
    problem_of,
)

RUN: dict[str, object] = {"agent": "guide", "input": "hello"}
HEARTBEAT = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event."""

    id: str | None
    event: str
    data: dict[str, object]


def frames_in(text: str) -> list[Frame]:
    """The events of a stream, comments left out. Each must be complete."""
    assert text.endswith("\n\n")
    frames = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        if block.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        frames.append(Frame(fields.get("id"), fields["event"], json.loads(fields["data"])))
    return frames


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


async def finished_run(service: Service) -> str:
    return str((await service.call("POST", "/v1/runs/wait", json=RUN)).json()["run"]["id"])


@pytest.mark.requirement("E2")
async def test_a_stream_has_every_event_once_in_order_and_ends_with_the_status(service: Service) -> None:
    response = await service.call("POST", "/v1/runs/stream", json=RUN)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    run_id = response.headers["location"].removeprefix("/v1/runs/")
    *frames, end = frames_in(response.text)
    assert [frame.id for frame in frames] == [str(seq) for seq in range(1, len(frames) + 1)]
    assert [frame.event for frame in frames] == [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "message.completed",
        "run.completed",
    ]
    assert end == Frame(None, "end", {"type": "end", "status": "completed"})
    stored = (await service.call("GET", f"/v1/runs/{run_id}/events")).json()["data"]
    assert [frame.data for frame in frames] == stored
    assert stored[0].items() >= {"seq": 1, "type": "run.queued", "run_id": run_id}.items()
    assert stored[0]["at"].endswith("Z")


@pytest.mark.requirement("E2")
async def test_a_stream_resumed_at_any_event_gives_exactly_the_rest(service: Service) -> None:
    run_id = await finished_run(service)
    path = f"/v1/runs/{run_id}/stream"
    everything = frames_in((await service.call("GET", path)).text)
    last_seq = len(everything) - 1
    for seq in range(last_seq + 1):
        resumed = await service.call("GET", path, headers={"Last-Event-ID": str(seq)})
        assert frames_in(resumed.text) == everything[seq:]
    beyond = await service.call("GET", path, headers={"Last-Event-ID": str(last_seq + 100)})
    assert frames_in(beyond.text) == everything[-1:]


async def test_a_started_stream_is_resumed_by_the_same_request(service: Service) -> None:
    headers = {"Idempotency-Key": "abc"}
    everything = frames_in((await service.call("POST", "/v1/runs/stream", json=RUN, headers=headers)).text)
    resumed = await service.call("POST", "/v1/runs/stream", json=RUN, headers={**headers, "Last-Event-ID": "2"})
    assert frames_in(resumed.text) == everything[2:]
    assert len(service.worker.submitted) == 1


@pytest.mark.parametrize("last_event_id", ["abc", "-1", "1.5", "99999999999999999999", "1 2"])
async def test_an_unreadable_last_event_id_is_refused_and_starts_nothing(service: Service, last_event_id: str) -> None:
    run_id = await finished_run(service)
    headers = {"Last-Event-ID": last_event_id}
    for method, path in (("GET", f"/v1/runs/{run_id}/stream"), ("POST", "/v1/runs/stream")):
        response = await service.call(method, path, json=RUN if method == "POST" else None, headers=headers)
        assert paths_of(problem_of(response, 422, "last_event_id_invalid")) == ["Last-Event-ID"]
    assert len(service.worker.submitted) == 1


async def test_a_stream_stops_where_the_run_waits_for_the_client(service: Service) -> None:
    service.worker.act = Act.ASK
    response = await service.call("POST", "/v1/runs/stream", json=RUN)
    *_, asking, end = frames_in(response.text)
    assert asking.event == "run.requires_action"
    assert end.data == {"type": "end", "status": "requires_action"}
    [call] = (await service.call("GET", response.headers["location"])).json()["pending"]
    body = {"tool_results": [{"tool_call_id": call["id"], "result": "sent"}]}
    await service.call("POST", f"{response.headers['location']}/resume", json=body)
    rest = await service.call(
        "GET", f"{response.headers['location']}/stream", headers={"Last-Event-ID": asking.id or ""}
    )
    frames = frames_in(rest.text)
    assert frames[0].id == str(int(asking.id or 0) + 1)
    assert [frame.event for frame in frames][:2] == ["tool.executed", "run.resumed"]
    assert frames[-1].data == {"type": "end", "status": "completed"}


@pytest.mark.requirement("E1")
async def test_events_are_sent_as_they_happen(service: Service) -> None:
    service.worker.act = Act.REST
    run = service.worker.submitted
    await service.call("POST", "/v1/runs", json=RUN)
    conversation = Conversation(service.app, "GET", f"/v1/runs/{run[0]}/stream")
    holding = asyncio.create_task(conversation.hold())
    await conversation.received(1)
    claimed = await claim(service.stores, run[0])
    await conversation.received(2)
    reply = reply_step(claimed.run)
    await service.stores.journal.commit(claimed.lease, reply)
    await conversation.received(3)
    await service.stores.journal.commit(claimed.lease, finish_step(reply.run))
    await holding
    frames = frames_in(b"".join(conversation.chunks).decode())
    assert [frame.id for frame in frames] == ["1", "2", "3", "4", "5", "6", None]
    assert frames[-1].data == {"type": "end", "status": "completed"}


@pytest.mark.requirement("E1")
async def test_a_client_that_leaves_ends_its_stream_and_nothing_else(service: Service) -> None:
    service.worker.act = Act.REST
    await service.call("POST", "/v1/runs", json=RUN)
    run_id = service.worker.submitted[0]
    leaver = Conversation(service.app, "GET", f"/v1/runs/{run_id}/stream")
    stayer = Conversation(service.app, "GET", f"/v1/runs/{run_id}/stream")
    leaving, staying = asyncio.create_task(leaver.hold()), asyncio.create_task(stayer.hold())
    await leaver.received(1)
    await stayer.received(1)
    topics = service.wakeups.topic_count
    leaver.left.set()
    await leaving
    assert service.wakeups.topic_count == topics > 0
    claimed = await claim(service.stores, run_id)
    await service.stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await staying
    assert frames_in(b"".join(stayer.chunks).decode())[-1].data == {"type": "end", "status": "completed"}
    assert len(leaver.chunks) == 1
    assert service.wakeups.topic_count == 0


async def test_a_quiet_stream_beats_without_counting_as_an_event() -> None:
    async with Harness(heartbeat_s=0.01).service() as service:
        await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
        service.worker.act = Act.REST
        await service.call("POST", "/v1/runs", json=RUN)
        run_id = service.worker.submitted[0]
        conversation = Conversation(service.app, "GET", f"/v1/runs/{run_id}/stream")
        holding = asyncio.create_task(conversation.hold())
        async with conversation.arrived:  # the first may come before the first event
            await conversation.arrived.wait_for(lambda: conversation.chunks.count(HEARTBEAT) >= 3)
        await service.call("POST", f"/v1/runs/{run_id}/cancel")
        await holding
        frames = frames_in(b"".join(conversation.chunks).decode())
        assert [frame.event for frame in frames] == ["run.queued", "run.cancelled", "end"]


async def test_a_stream_that_breaks_on_our_side_stops_without_an_end(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = await finished_run(service)
    execute, seen = GetRun.execute, 0

    async def broken_at_the_end(self: GetRun, principal: object, run: object) -> object:
        nonlocal seen
        seen += 1
        if seen > 1:
            raise RuntimeError("password=hunter2")
        return await execute(self, principal, run)  # type: ignore[arg-type]

    monkeypatch.setattr(GetRun, "execute", broken_at_the_end)
    with caplog.at_level(logging.ERROR):
        response = await service.call("GET", f"/v1/runs/{run_id}/stream")
    assert [frame.event for frame in frames_in(response.text)][-1] == "run.completed"
    assert "hunter2" not in response.text
    assert [record.__dict__["run_id"] for record in caplog.records if record.levelno == logging.ERROR] == [run_id]


@pytest.mark.requirement("C6")
async def test_a_stream_of_another_organization_is_refused_before_it_begins(service: Service) -> None:
    run_id = await finished_run(service)
    problem_of(await service.call("GET", f"/v1/runs/{run_id}/stream", token=OTHER_ADMIN), 404, "run_not_found")
